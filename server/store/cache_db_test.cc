#include "server/store/cache_db.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "base/digest_count.h"
#include "base/file.h"
#include "plan/fusion/group_problem.h"
#include "server/store/testing/fault_vfs.h"

namespace ag {
namespace {

struct CachePlace {
  TempDir dir = *TempDir::Make("cache-db-test-");
  FakeClock clock;
  std::string path = dir.path() + "/cache.db";
  StatusOr<std::unique_ptr<CacheDb>> Open(const std::string& vfs = "") {
    CacheDbOptions options;
    options.path = path;
    options.vfs = vfs;
    return CacheDb::Open(options, clock);
  }
  void Sql(const std::string& sql) {
    sqlite3* raw = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &raw), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(raw, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(raw);
    sqlite3_close(raw);
  }
};

CacheRow NewRow(const std::string& problem, FakeClock& clock) {
  CacheRow row;
  row.problem = problem;
  row.environment = "cpu=x";
  row.measurement = {{100, 90, 110}, 21, 1, 5, "kernel", {{"other", 150}}, false, 12};
  row.summary = "conv: Conv";
  row.measured_unix_seconds = clock.UnixSeconds();
  return row;
}

std::optional<CacheRow> Find(CacheDb& db, const std::string& problem, const Environment& at) {
  return db.Find(GroupKey(problem, at), problem, at);
}

TEST(CacheDb, RowsComeBackWhole) {
  CachePlace place;
  auto db = *place.Open();
  EXPECT_FALSE(Find(*db, "p", "cpu=x").has_value());
  ASSERT_TRUE(db->Put(NewRow("p", place.clock)).ok());
  db.reset();
  db = *place.Open();
  const auto row = Find(*db, "p", "cpu=x");
  ASSERT_TRUE(row.has_value());
  EXPECT_EQ(row->measurement.latency.median_ns, 100);
  EXPECT_EQ(row->measurement.alternatives.at(0).first, "other");
  EXPECT_EQ(row->measurement.active_cores, 12);
  EXPECT_EQ(row->summary, "conv: Conv");
  EXPECT_FALSE(Find(*db, "p", "cpu=y").has_value());
}

TEST(CacheDb, AHitComparesTheBytes) {
  CachePlace place;
  ASSERT_TRUE((*place.Open())->Put(NewRow("p", place.clock)).ok());
  // Acts as if another problem had the same digest.
  place.Sql("UPDATE measurements SET key = '" + GroupKey("q", "cpu=x").Hex() + "'");
  EXPECT_FALSE(Find(**place.Open(), "q", "cpu=x").has_value());
}

TEST(CacheDb, ACorruptRowIsAMiss) {
  const char* damages[] = {"measurement = x''",
                           "measurement = x'0a7f'",
                           "measurement = zeroblob(length(measurement))",
                           "summary = 'k'",
                           "checksum = ''",
                           "code = 13",
                           "environment = ''",
                           "measured_unix_seconds = 1",
                           "problem = x'71'"};
  for (const char* damage : damages) {
    CachePlace place;
    ASSERT_TRUE((*place.Open())->Put(NewRow("p", place.clock)).ok());
    place.Sql(std::string("UPDATE measurements SET ") + damage);
    auto db = *place.Open();
    EXPECT_FALSE(Find(*db, "p", "cpu=x").has_value()) << damage;
    EXPECT_TRUE(db->List({})->empty()) << damage;
    ASSERT_TRUE(db->Put(NewRow("p", place.clock)).ok());
    EXPECT_TRUE(Find(*db, "p", "cpu=x").has_value()) << damage;
  }
}

TEST(CacheDb, ACorruptFileIsSetAside) {
  CachePlace place;
  for (int n = 1; n <= 2; ++n) {
    std::ofstream(place.path) << std::string(8192, 'x');
    auto db = *place.Open();
    EXPECT_TRUE(std::filesystem::exists(fmt::format("{}.corrupt-{}", place.path, n)));
    EXPECT_TRUE(db->Put(NewRow("p", place.clock)).ok());
  }
}

TEST(CacheDb, ADamagedPageSetsTheFileAside) {
  CachePlace place;
  {
    auto db = *place.Open();
    for (int i = 0; i < 300; ++i) {
      ASSERT_TRUE(db->Put(NewRow(std::string(200, 'a') + std::to_string(i), place.clock)).ok());
    }
  }
  std::fstream file(place.path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(5 * 4096);
  file << std::string(3 * 4096, '\xff');
  file.close();
  auto db = *place.Open();
  EXPECT_TRUE(std::filesystem::exists(place.path + ".corrupt-1"));
  EXPECT_EQ(db->Stats()->measurements, 0);
}

TEST(CacheDb, ANewerSchemaIsRefusedAndKept) {
  CachePlace place;
  ASSERT_TRUE(place.Open().ok());
  place.Sql("PRAGMA user_version=99");
  EXPECT_EQ(place.Open().status().code(), StatusCode::kFailedPrecondition);
  EXPECT_FALSE(std::filesystem::exists(place.path + ".corrupt-1"));
}

TEST(CacheDb, AFileOfAnOlderSchemaIsSetAside) {
  CachePlace place;
  ASSERT_TRUE((*place.Open())->Put(NewRow("p", place.clock)).ok());
  place.Sql("PRAGMA user_version=2");
  auto db = *place.Open();
  EXPECT_TRUE(std::filesystem::exists(place.path + ".old-1"));
  EXPECT_FALSE(Find(*db, "p", "cpu=x").has_value());
  EXPECT_TRUE(db->Put(NewRow("p", place.clock)).ok());
}

// One digest is the key's, the other one the checksum's.
TEST(CacheDb, AHitIsOneReadWithTwoDigests) {
  CachePlace place;
  auto db = *place.Open();
  ASSERT_TRUE(db->Put(NewRow("p", place.clock)).ok());
  const uint64_t before = DigestsComputed();
  EXPECT_TRUE(Find(*db, "p", "cpu=x").has_value());
  EXPECT_EQ(DigestsComputed() - before, 2u);
}

TEST(CacheDb, BadTimesAreRefused) {
  CachePlace place;
  auto db = *place.Open();
  for (const double bad : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    CacheRow row = NewRow("p", place.clock);
    row.measurement.latency = {bad, bad, bad};
    EXPECT_EQ(db->Put(row).code(), StatusCode::kInvalidArgument) << bad;
  }
  CacheRow row = NewRow("p", place.clock);
  row.measurement.active_cores = -1;
  EXPECT_EQ(ToString(db->Put(row)), "INVALID_ARGUMENT: measurement: -1 active cores");
  EXPECT_EQ(db->Stats()->measurements, 0);
}

TEST(CacheDb, FailuresAreRememberedForAWhile) {
  CachePlace place;
  auto db = *place.Open();
  CacheRow row = NewRow("p", place.clock);
  row.status = Err(StatusCode::kInternal, "quarantined");
  ASSERT_TRUE(db->Put(row).ok());
  EXPECT_EQ(Message(Find(*db, "p", "cpu=x")->status), "quarantined");
  EXPECT_EQ(db->Stats()->failures, 1);
  EXPECT_TRUE(db->List({})->empty());
  place.clock.Advance(std::chrono::hours(25));
  EXPECT_FALSE(Find(*db, "p", "cpu=x").has_value());
}

TEST(CacheDb, ImportsAllOrNothing) {
  CachePlace place;
  auto db = *place.Open();
  ASSERT_TRUE(db->Put(NewRow("a", place.clock)).ok());
  std::vector<CacheRow> rows = {NewRow("a", place.clock), NewRow("b", place.clock),
                                NewRow("c", place.clock)};
  rows[2].measurement.latency.median_ns = -1;
  EXPECT_EQ(Message(db->Import(rows, "me").status()), "record 2: measurement: a time of -1 ns");
  EXPECT_EQ(db->Stats()->measurements, 1);
  rows.pop_back();
  EXPECT_EQ(db->Import(rows, "me")->added, 1);
  EXPECT_EQ(db->Import(rows, "me")->known, 2);
}

TEST(CacheDb, ARowSaysWhereItCameFrom) {
  CachePlace place;
  auto db = *place.Open();
  CacheRow own = NewRow("own", place.clock);
  own.worker = "w1";
  ASSERT_TRUE(db->Put(own).ok());
  CacheRow theirs = NewRow("theirs", place.clock);
  theirs.worker = "far";
  const CacheDb::Imported imported = *db->Import({theirs}, "ipv4:10.0.0.1:5");
  db.reset();
  db = *place.Open();
  EXPECT_EQ(Find(*db, "own", "cpu=x")->worker, "w1");
  EXPECT_EQ(Find(*db, "own", "cpu=x")->import, 0);
  EXPECT_TRUE(Find(*db, "own", "cpu=x")->is_checked);
  EXPECT_EQ(Find(*db, "theirs", "cpu=x")->worker, "far");
  EXPECT_EQ(Find(*db, "theirs", "cpu=x")->import, imported.import);
  EXPECT_FALSE(Find(*db, "theirs", "cpu=x")->is_checked);
  ASSERT_TRUE(db->SetChecked(GroupKey("theirs", "cpu=x")).ok());
  EXPECT_TRUE(Find(*db, "theirs", "cpu=x")->is_checked);
  EXPECT_GT(db->Import({NewRow("more", place.clock)}, "me")->import, imported.import);
}

TEST(CacheDb, ForgetsWhatFitsEveryFilter) {
  CachePlace place;
  auto db = *place.Open();
  const auto put = [&](const std::string& problem, const std::string& worker,
                       const std::string& kernel, const Environment& environment) {
    CacheRow row = NewRow(problem, place.clock);
    row.worker = worker;
    row.measurement.kernel = kernel;
    row.environment = environment;
    ASSERT_TRUE(db->Put(row).ok());
  };
  put("a", "w1", "k1", "cpu=x");
  put("b", "w1", "k2", "cpu=x");
  put("c", "w2", "k1", "cpu=y");
  ASSERT_TRUE(db->Import({NewRow("d", place.clock)}, "me").ok());
  const std::string of_x = "model=m\nenvironment=cpu=x\nrules=r\n";
  const std::string of_y = "model=m\nenvironment=cpu=y\nrules=r\n";
  for (const auto& [text, environment] : {std::pair(of_x, "cpu=x"), std::pair(of_y, "cpu=y")}) {
    const AnswerSubject of = {.environment = environment};
    ASSERT_TRUE(db->PutModel({text, "result", Sha256("output"), of}).ok());
  }
  EXPECT_EQ(ToString(db->Forget({}).status()),
            "INVALID_ARGUMENT: name an environment, a worker, an import or a kernel, or all");
  EXPECT_EQ(db->Forget({.worker = "w1", .kernel = "k3"})->measurements, 0);
  EXPECT_EQ(db->Forget({.worker = "w1", .kernel = "k2"})->models, 1) << "it may rest on it";
  EXPECT_FALSE(Find(*db, "b", "cpu=x").has_value());
  EXPECT_FALSE(db->FindModel(of_x).has_value());
  EXPECT_TRUE(db->FindModel(of_y).has_value());
  EXPECT_EQ(db->Forget({.import = 1})->measurements, 1);
  EXPECT_TRUE(Find(*db, "a", "cpu=x").has_value());
  EXPECT_EQ(db->Forget({.environment = "cpu=y"})->measurements, 1);
  EXPECT_FALSE(db->FindModel(of_y).has_value());
  EXPECT_EQ(db->Forget({.all = true})->measurements, 1);
  EXPECT_EQ(db->Stats()->measurements, 0);
}

TEST(CacheDb, AnotherNamespaceDisownsEverything) {
  CachePlace place;
  const auto open = [&](const std::string& name) {
    CacheDbOptions options;
    options.path = place.path;
    options.cache_namespace = name;
    return *CacheDb::Open(options, place.clock);
  };
  const auto fill = [&](CacheDb& db) {
    ASSERT_TRUE(db.Put(NewRow("p", place.clock)).ok());
    ASSERT_TRUE(db.PutModel({"key", "result", Sha256("output")}).ok());
  };
  const auto knows = [&](CacheDb& db) {
    const bool row = Find(db, "p", "cpu=x").has_value(), answer = db.FindModel("key").has_value();
    EXPECT_EQ(row, answer);
    EXPECT_EQ(db.List({})->size(), row ? 1u : 0u);
    EXPECT_EQ(db.Stats()->measurements + db.Stats()->models, row ? 2 : 0);
    return row;
  };
  fill(*open(""));
  EXPECT_TRUE(knows(*open("")));
  EXPECT_FALSE(knows(*open("a")));
  fill(*open("a"));
  EXPECT_TRUE(knows(*open("a")));
  EXPECT_FALSE(knows(*open("b")));
  EXPECT_EQ(open("b")->Forget({.all = true})->measurements, 0);
  EXPECT_TRUE(knows(*open(""))) << "the old name has the old rows";
}

// Undoes the step to version 6.
constexpr char kToVersion5[] =
    "DROP INDEX model_answers_model; DELETE FROM counters WHERE name = 'answers';"
    "ALTER TABLE model_answers DROP COLUMN model; ALTER TABLE model_answers DROP COLUMN device;"
    "ALTER TABLE model_answers DROP COLUMN environment;"
    "ALTER TABLE model_answers DROP COLUMN tenant;"
    "DELETE FROM migrations WHERE version > 5; PRAGMA user_version=5";

TEST(CacheDb, AFileOfVersion4KeepsItsRows) {
  CachePlace place;
  ASSERT_TRUE((*place.Open())->Put(NewRow("p", place.clock)).ok());
  place.Sql(kToVersion5);
  place.Sql(
      "ALTER TABLE measurements DROP COLUMN worker; ALTER TABLE measurements DROP COLUMN import;"
      "ALTER TABLE measurements DROP COLUMN is_checked; DROP TABLE imports;"
      "ALTER TABLE measurements DROP COLUMN namespace;"
      "ALTER TABLE model_answers DROP COLUMN namespace;"
      "DELETE FROM migrations WHERE version > 4; PRAGMA user_version=4");
  const auto row = Find(**place.Open(), "p", "cpu=x");
  ASSERT_TRUE(row.has_value());
  EXPECT_FALSE(row->is_checked) << "it may have been imported";
}

TEST(CacheDb, RemembersWholeAnswers) {
  CachePlace place;
  auto db = *place.Open();
  const ModelAnswer answer = {"key text", "result", Sha256("output")};
  ASSERT_TRUE(db->PutModel(answer).ok());
  EXPECT_EQ(db->FindModel("key text")->result, "result");
  EXPECT_FALSE(db->FindModel("other").has_value());
  db.reset();
  place.Sql("UPDATE model_answers SET result = 'forged'");
  EXPECT_FALSE((*place.Open())->FindModel("key text").has_value());
}

ModelAnswer NewAnswer(const std::string& text, const AnswerSubject& of) {
  return {text, "result of " + text, Sha256(text), of};
}

std::vector<std::string> Texts(CacheDb& db, const CacheDb::AnswerFilter& filter) {
  std::vector<std::string> texts;
  const auto rows = db.ListModels(filter);
  EXPECT_TRUE(rows.ok()) << rows.status();
  for (const auto& row : *rows) texts.push_back(row.answer.key_text);
  return texts;
}

TEST(CacheDb, ListsWholeAnswersByWhatTheyAreOf) {
  using Keys = std::vector<std::string>;
  CachePlace place;
  auto db = *place.Open();
  ASSERT_TRUE(db->PutModel(NewAnswer("1", {"m1", "cpu", "cpu=x", ""})).ok());
  place.clock.Advance(std::chrono::seconds(1));
  ASSERT_TRUE(db->PutModel(NewAnswer("2", {"m1", "sim:h200", "sim", "ann"})).ok());
  ASSERT_TRUE(db->PutModel(NewAnswer("3", {"m2", "cpu", "cpu=x", "bob"})).ok());
  EXPECT_EQ(Texts(*db, {}).size(), 3u);
  EXPECT_EQ(Texts(*db, {}).back(), "1") << "the newest first";
  EXPECT_EQ(Texts(*db, {.model = "m1"}), (Keys{"2", "1"}));
  EXPECT_EQ(Texts(*db, {.model = "m1", .device = "cpu"}), (Keys{"1"}));
  EXPECT_EQ(Texts(*db, {.environment = "sim"}), (Keys{"2"}));
  EXPECT_EQ(Texts(*db, {.tenant = "bob"}), (Keys{"3"}));
  EXPECT_EQ(Texts(*db, {.tenant = ""}), (Keys{"1"}));
  // Pages: each row once.
  Keys all;
  CacheDb::AnswerFilter one = {.rows_max = 1};
  while (true) {
    const auto rows = *db->ListModels(one);
    if (rows.empty()) break;
    all.push_back(rows[0].answer.key_text);
    EXPECT_EQ(Texts(*db, {.key = rows[0].key}), (Keys{all.back()}));
    one.before = rows[0].place;
  }
  EXPECT_EQ(all, Texts(*db, {}));
  EXPECT_EQ(db->ListModels({.before = "nonsense"}).status().code(), StatusCode::kInvalidArgument);
  db.reset();
  place.Sql("UPDATE model_answers SET result = 'forged' WHERE model = 'm2'");
  EXPECT_EQ(Texts(**place.Open(), {}), (Keys{"2", "1"}));
}

TEST(CacheDb, AFileOfVersion5LearnsWhatItsAnswersAreOf) {
  CachePlace place;
  const std::string request = "{\n \"model_digest\": \"abc\",\n \"device\": \"cpu\"\n}";
  for (const char* rest : {"environment=cpu=x\nonnxruntime=\nrules=r\n",
                           "environment=cpu=y\nonnxruntime=\nrules=r\ntenant=ann\n"}) {
    ASSERT_TRUE((*place.Open())->PutModel(NewAnswer(request + rest, {})).ok());
  }
  ASSERT_TRUE((*place.Open())->PutModel(NewAnswer("no such text", {})).ok());
  place.Sql(kToVersion5);
  auto db = *place.Open();
  EXPECT_EQ(Texts(*db, {}).size(), 3u);
  const auto rows = *db->ListModels({.model = "abc", .device = "cpu", .tenant = "ann"});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].answer.of.environment, "cpu=y");
  EXPECT_EQ(Texts(*db, {.environment = "cpu=x", .tenant = ""}).size(), 1u);
}

TEST(CacheDb, CountsAnswersThatWereGiven) {
  CachePlace place;
  ASSERT_TRUE((*place.Open())->CountAnswers(3).ok());
  auto db = *place.Open();
  ASSERT_TRUE(db->CountAnswers(4).ok());
  EXPECT_EQ(db->Stats()->answers, 7);
}

TEST(CacheDb, CountsHitsAndMisses) {
  CachePlace place;
  auto db = *place.Open();
  ASSERT_TRUE(db->Put(NewRow("p", place.clock)).ok());
  ASSERT_TRUE(db->Count(1, 2, {GroupKey("p", "cpu=x")}).ok());
  EXPECT_EQ(db->Stats()->hits, 1);
  EXPECT_EQ(db->Stats()->misses, 2);
  EXPECT_EQ(Find(*db, "p", "cpu=x")->hits, 1);
}

TEST(CacheDb, NothingAcknowledgedIsLostWhenAWriteFails) {
  for (int nth = 1; nth < 40; ++nth) {
    CachePlace place;
    SetVfsFault({nth, SQLITE_FULL});
    std::vector<std::string> acknowledged;
    if (auto db = place.Open(kFaultVfs); db.ok()) {
      for (int i = 0; i < 8; ++i) {
        const std::string problem = std::to_string(i);
        if ((*db)->Put(NewRow(problem, place.clock)).ok()) acknowledged.push_back(problem);
      }
    }
    SetVfsFault({});
    auto db = *place.Open(kFaultVfs);
    for (const std::string& problem : acknowledged) {
      EXPECT_TRUE(Find(*db, problem, "cpu=x").has_value())
          << problem << " lost, failure at " << nth;
    }
  }
}

}  // namespace
}  // namespace ag
