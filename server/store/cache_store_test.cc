// The conformance suite of CacheStore: each engine passes it.
#include "server/store/cache_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

#include "base/file.h"
#include "plan/fusion/group_problem.h"
#include "server/store/testing/store_engines.h"
#include "wire/measurement_wire.h"

namespace ag {
namespace {

class CacheStoreTest : public testing::TestWithParam<StoreEngine> {
 protected:
  using Names = std::vector<std::string>;

  CacheStoreTest() { Reopen(); }
  void Reopen(const std::string& cache_namespace = "") {
    store_ = {};
    store_ = *place_->Open(cache_namespace);
    db_ = store_.cache.get();
  }
  Names Problems(const CacheStore::ListOptions& options = {}) {
    Names names;
    const std::vector<CacheStore::Listed> rows = *db_->List(options);
    for (const auto& row : rows) names.push_back(row.record.problem);
    return names;
  }
  Names Texts(const CacheStore::AnswerFilter& filter) {
    Names texts;
    const std::vector<CacheStore::ListedAnswer> rows = *db_->ListModels(filter);
    for (const auto& row : rows) texts.push_back(row.answer.key_text);
    return texts;
  }

  std::unique_ptr<StorePlace> place_ = GetParam().make();
  Store store_;
  CacheStore* db_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(Engines, CacheStoreTest, testing::ValuesIn(CacheEngines()),
                         [](const auto& info) { return info.param.name; });

ModelAnswer AnswerOf(const std::string& text, const AnswerSubject& of = {}) {
  return {text, "result of " + text, Sha256(text), of};
}

RegionRow RegionOf(const std::string& depends_on, const std::string& entry,
                   const Environment& environment = "cpu=x") {
  return {.depends_on = depends_on,
          .environment = environment,
          .entry = entry,
          .copies = 3,
          .models = 1};
}

TEST_P(CacheStoreTest, RegionsComeBackWhole) {
  EXPECT_FALSE(db_->FindRegion("form=a", 2).has_value());
  const std::string entry("\0\xff'", 3);
  place_->clock.Advance(std::chrono::hours(1));
  ASSERT_TRUE(db_->PutRegion(RegionOf("form=a", entry)).ok());
  Reopen();
  ASSERT_TRUE(db_->FindRegion("form=a", 2).has_value());
  const std::optional<RegionRow> row = db_->FindRegion("form=a", 4);
  ASSERT_TRUE(row.has_value());
  EXPECT_EQ(row->depends_on, "form=a");
  EXPECT_EQ(row->environment, "cpu=x");
  EXPECT_EQ(row->entry, entry);
  EXPECT_EQ(row->made_unix_seconds, place_->clock.UnixSeconds());
  EXPECT_EQ(row->copies, 5) << "before it was found again";
  EXPECT_EQ(row->models, 2);
  // What is put again replaces what was found, and adds to what was seen.
  place_->clock.Advance(std::chrono::hours(1));
  ASSERT_TRUE(db_->PutRegion(RegionOf("form=a", "better")).ok());
  const std::vector<CacheStore::ListedRegion> listed = *db_->ListRegions({});
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].record.entry, "better");
  EXPECT_EQ(listed[0].record.copies, 12);
  EXPECT_EQ(listed[0].record.models, 4);
  EXPECT_EQ(listed[0].record.made_unix_seconds, place_->clock.UnixSeconds());
  EXPECT_EQ(db_->Stats()->regions, 1);
}

TEST_P(CacheStoreTest, RegionsAreListedByKeyAndEnvironmentInPages) {
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(db_->PutRegion(RegionOf(name, "e")).ok());
  }
  ASSERT_TRUE(db_->PutRegion(RegionOf("d", "e", "cpu=y")).ok());
  const auto names = [&](const CacheStore::RegionFilter& filter) {
    Names names;
    const std::vector<CacheStore::ListedRegion> rows = *db_->ListRegions(filter);
    for (const CacheStore::ListedRegion& row : rows) names.push_back(row.record.depends_on);
    return names;
  };
  EXPECT_EQ(names({}), Names({"d", "c", "b", "a"}));
  EXPECT_EQ(names({.environment = "cpu=x", .rows_max = 2}), Names({"c", "b"}));
  const int64_t last = db_->ListRegions({.rows_max = 3})->at(2).row;
  EXPECT_EQ(names({.before_row = last}), Names({"a"}));
  const std::string key = Sha256("b").Hex();
  EXPECT_EQ(names({.key = key}), Names({"b"}));
  EXPECT_EQ(names({.key = key.substr(0, 9)}), Names({"b"}));
  EXPECT_EQ(names({.environment = "cpu=y", .key = key}), Names());
  EXPECT_EQ(db_->ListRegions({.key = key})->at(0).key, key);
  ASSERT_TRUE(db_->PutRegion(RegionOf("a", "better")).ok());
  ASSERT_TRUE(db_->PutRegion(RegionOf("e", "e")).ok());
  EXPECT_EQ(names({}), Names({"e", "a", "d", "c", "b"})) << "the newest first";
}

TEST_P(CacheStoreTest, RegionsOfAnEnvironmentAreForgottenWithItsMeasurements) {
  ASSERT_TRUE(db_->Put(NewRow("p")).ok());
  ASSERT_TRUE(db_->PutRegion(RegionOf("a", "e")).ok());
  ASSERT_TRUE(db_->PutRegion(RegionOf("b", "e", "cpu=y")).ok());
  EXPECT_EQ(db_->Forget({.kernel = "kernel"})->regions, 1) << "it may rest on it";
  EXPECT_FALSE(db_->FindRegion("a", 1).has_value());
  EXPECT_TRUE(db_->FindRegion("b", 1).has_value());
  EXPECT_EQ(db_->Forget({.all = true})->regions, 1);
  EXPECT_EQ(db_->Stats()->regions, 0);
}

TEST_P(CacheStoreTest, RowsComeBackWhole) {
  EXPECT_FALSE(FindRow(*db_, "p").has_value());
  CacheRow row = NewRow(std::string("p\0\xff'", 4));
  row.measurement.discarded = 3;
  row.measurement.simulated = true;
  row.measurement.disturbed = 2;
  row.summary = "conv: 'Conv'";
  row.measured_unix_seconds = 7;
  row.hits = 4;
  row.worker = "w1";
  row.is_checked = false;
  ASSERT_TRUE(db_->Put(row).ok());
  Reopen();
  const auto read = FindRow(*db_, row.problem);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->problem, row.problem);
  EXPECT_EQ(read->environment, "cpu=x");
  EXPECT_TRUE(read->status.ok());
  EXPECT_EQ(EncodeMeasurement(read->measurement), EncodeMeasurement(row.measurement));
  EXPECT_EQ(read->summary, row.summary);
  EXPECT_EQ(read->measured_unix_seconds, 7);
  EXPECT_EQ(read->hits, 4);
  EXPECT_EQ(read->worker, "w1");
  EXPECT_EQ(read->import, 0);
  EXPECT_FALSE(read->is_checked);
  EXPECT_FALSE(FindRow(*db_, row.problem, "cpu=y").has_value());
}

TEST_P(CacheStoreTest, BadTimesAreRefused) {
  for (const double bad : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    CacheRow row = NewRow("p");
    row.measurement.latency = {bad, bad, bad};
    EXPECT_EQ(db_->Put(row).code(), StatusCode::kInvalidArgument) << bad;
  }
  CacheRow row = NewRow("p");
  row.measurement.active_cores = -1;
  EXPECT_EQ(ToString(db_->Put(row)), "INVALID_ARGUMENT: measurement: -1 active cores");
  EXPECT_EQ(db_->Stats()->measurements, 0);
}

TEST_P(CacheStoreTest, RowsAreFoundByKeyEnvironmentAndGroup) {
  CacheRow conv = NewRow("conv");
  conv.summary = "conv: Conv Relu";
  CacheRow chain = NewRow("chain");
  chain.summary = "chain: Relu";
  CacheRow elsewhere = conv;
  elsewhere.environment = "cores=4";
  for (const CacheRow& row : {conv, chain, elsewhere}) ASSERT_TRUE(db_->Put(row).ok());
  const auto count = [&](CacheStore::ListOptions options) { return db_->List(options)->size(); };
  const std::string key = GroupKey(conv.problem, conv.environment).Hex();
  EXPECT_EQ(count({.key = key}), 1u);
  EXPECT_EQ(db_->List({.key = key.substr(0, 10)})->at(0).record.problem, "conv");
  EXPECT_EQ(count({.key = key.substr(0, 10), .group = "chain"}), 0u);
  EXPECT_EQ(count({.key = "g"}), 0u);
  EXPECT_EQ(count({.group = "Relu"}), 3u);
  EXPECT_EQ(count({.group = "conv:"}), 2u);
  EXPECT_EQ(count({.environment = "cores=4", .group = "conv:"}), 1u);
  Reopen("elsewhere");
  EXPECT_EQ(count({.key = key}), 0u);
  ASSERT_TRUE(db_->Put(conv).ok());
  EXPECT_EQ(count({.key = key}), 1u);
  EXPECT_EQ(db_->List({.key = key.substr(0, 10)}).status().code(), StatusCode::kInvalidArgument);
}

TEST_P(CacheStoreTest, FailuresAreRememberedForAWhile) {
  CacheRow row = NewRow("p");
  row.status = Err(StatusCode::kInternal, "quarantined");
  row.measured_unix_seconds = place_->clock.UnixSeconds();
  ASSERT_TRUE(db_->Put(row).ok());
  Reopen();
  EXPECT_EQ(ToString(FindRow(*db_, "p")->status), "INTERNAL: quarantined");
  EXPECT_EQ(db_->Stats()->failures, 1);
  EXPECT_TRUE(db_->List({})->empty());
  place_->clock.Advance(std::chrono::hours(25));
  EXPECT_FALSE(FindRow(*db_, "p").has_value());
}

TEST_P(CacheStoreTest, ImportsAllOrNothing) {
  ASSERT_TRUE(db_->Put(NewRow("a")).ok());
  std::vector<CacheRow> rows = {NewRow("a"), NewRow("b"), NewRow("c")};
  rows[2].measurement.latency.median_ns = -1;
  EXPECT_EQ(Message(db_->Import(rows, "me").status()), "record 2: measurement: a time of -1 ns");
  EXPECT_EQ(db_->Stats()->measurements, 1);
  rows.pop_back();
  EXPECT_EQ(db_->Import(rows, "me")->added, 1);
  const CacheStore::Imported again = *db_->Import(rows, "me");
  EXPECT_EQ(again.known, 2);
  EXPECT_EQ(again.added, 0);
  EXPECT_EQ(again.import, 0) << "nothing came by it";
}

TEST_P(CacheStoreTest, ARowSaysWhereItCameFrom) {
  CacheRow own = NewRow("own");
  own.worker = "w1";
  ASSERT_TRUE(db_->Put(own).ok());
  CacheRow theirs = NewRow("theirs");
  theirs.worker = "far";
  const CacheStore::Imported imported = *db_->Import({theirs}, "ipv4:10.0.0.1:5");
  Reopen();
  EXPECT_EQ(FindRow(*db_, "own")->worker, "w1");
  EXPECT_EQ(FindRow(*db_, "own")->import, 0);
  EXPECT_TRUE(FindRow(*db_, "own")->is_checked);
  EXPECT_EQ(FindRow(*db_, "theirs")->worker, "far");
  EXPECT_EQ(FindRow(*db_, "theirs")->import, imported.import);
  EXPECT_FALSE(FindRow(*db_, "theirs")->is_checked);
  ASSERT_TRUE(db_->SetChecked(GroupKey("theirs", "cpu=x")).ok());
  EXPECT_TRUE(FindRow(*db_, "theirs")->is_checked);
  EXPECT_GT(db_->Import({NewRow("more")}, "me")->import, imported.import);
}

TEST_P(CacheStoreTest, ForgetsWhatFitsEveryFilter) {
  const auto put = [&](const std::string& problem, const std::string& worker,
                       const std::string& kernel, const Environment& environment) {
    CacheRow row = NewRow(problem);
    row.worker = worker;
    row.measurement.kernel = kernel;
    row.environment = environment;
    ASSERT_TRUE(db_->Put(row).ok());
  };
  put("a", "w1", "k1", "cpu=x");
  put("b", "w1", "k2", "cpu=x");
  put("c", "w2", "k1", "cpu=y");
  ASSERT_TRUE(db_->Import({NewRow("d")}, "me").ok());
  const std::string of_x = "model=m\nenvironment=cpu=x\nrules=r\n";
  const std::string of_y = "model=m\nenvironment=cpu=y\nrules=r\n";
  for (const auto& [text, environment] : {std::pair(of_x, "cpu=x"), std::pair(of_y, "cpu=y")}) {
    const AnswerSubject of = {.environment = environment};
    ASSERT_TRUE(db_->PutModel({text, "result", Sha256("output"), of}).ok());
  }
  EXPECT_EQ(ToString(db_->Forget({}).status()),
            "INVALID_ARGUMENT: name an environment, a worker, an import or a kernel, or all");
  EXPECT_EQ(db_->Forget({.worker = "w1", .kernel = "k3"})->measurements, 0);
  EXPECT_EQ(db_->Forget({.worker = "w1", .kernel = "k2"})->models, 1) << "it may rest on it";
  EXPECT_FALSE(FindRow(*db_, "b").has_value());
  EXPECT_FALSE(db_->FindModel(of_x).has_value());
  EXPECT_TRUE(db_->FindModel(of_y).has_value());
  EXPECT_EQ(db_->Forget({.import = 1})->measurements, 1);
  EXPECT_TRUE(FindRow(*db_, "a").has_value());
  EXPECT_EQ(db_->Forget({.environment = "cpu=y"})->measurements, 1);
  EXPECT_FALSE(db_->FindModel(of_y).has_value());
  EXPECT_EQ(db_->Forget({.all = true})->measurements, 1);
  EXPECT_EQ(db_->Stats()->measurements, 0);
}

TEST_P(CacheStoreTest, CountsHitsAndMisses) {
  ASSERT_TRUE(db_->Put(NewRow("p")).ok());
  ASSERT_TRUE(db_->Count(1, 2, {GroupKey("p", "cpu=x")}).ok());
  Reopen();
  ASSERT_TRUE(db_->Count(0, 3, {GroupKey("unknown", "cpu=x")}).ok());
  EXPECT_EQ(db_->Stats()->hits, 1);
  EXPECT_EQ(db_->Stats()->misses, 5);
  EXPECT_EQ(FindRow(*db_, "p")->hits, 1);
}

TEST_P(CacheStoreTest, ListsWholeAnswersByWhatTheyAreOf) {
  ASSERT_TRUE(db_->PutModel(AnswerOf("1", {"m1", "cpu", "cpu=x", ""})).ok());
  place_->clock.Advance(std::chrono::seconds(1));
  ASSERT_TRUE(db_->PutModel(AnswerOf("2", {"m1", "sim:h200", "sim", "ann"})).ok());
  ASSERT_TRUE(db_->PutModel(AnswerOf("3", {"m2", "cpu", "cpu=x", "bob"})).ok());
  EXPECT_EQ(Texts({}).size(), 3u);
  EXPECT_EQ(db_->ListModels({.model = "m2"})->at(0).answer.result, "result of 3");
  EXPECT_EQ(db_->ListModels({.model = "m2"})->at(0).answer.output, Sha256("3"));
  EXPECT_EQ(Texts({}).back(), "1") << "the newest first";
  EXPECT_EQ(Texts({.model = "m1"}), (Names{"2", "1"}));
  EXPECT_EQ(Texts({.model = "m1", .device = "cpu"}), (Names{"1"}));
  EXPECT_EQ(Texts({.environment = "sim"}), (Names{"2"}));
  EXPECT_EQ(Texts({.tenant = "bob"}), (Names{"3"}));
  EXPECT_EQ(Texts({.tenant = ""}), (Names{"1"}));
  // Pages: each row once.
  Names all;
  CacheStore::AnswerFilter one = {.rows_max = 1};
  while (true) {
    const auto rows = *db_->ListModels(one);
    if (rows.empty()) break;
    all.push_back(rows[0].answer.key_text);
    EXPECT_EQ(Texts({.key = rows[0].key}), (Names{all.back()}));
    one.before = rows[0].place;
  }
  EXPECT_EQ(all, Texts({}));
  EXPECT_EQ(db_->ListModels({.before = "nonsense"}).status().code(), StatusCode::kInvalidArgument);
}

TEST_P(CacheStoreTest, PutReplacesTheRowOfItsKey) {
  ASSERT_TRUE(db_->Put(NewRow("p")).ok());
  ASSERT_TRUE(db_->Put(NewRow("q")).ok());
  CacheRow row = NewRow("p");
  row.measurement.latency = {50, 40, 60};
  ASSERT_TRUE(db_->Put(row).ok());
  EXPECT_EQ(FindRow(*db_, "p")->measurement.latency.median_ns, 50);
  EXPECT_EQ(Problems(), (Names{"p", "q"})) << "the newest first, each once";
  row.status = Err(StatusCode::kInternal, "crashed");
  row.measured_unix_seconds = place_->clock.UnixSeconds();
  ASSERT_TRUE(db_->Put(row).ok());
  EXPECT_FALSE(FindRow(*db_, "p")->status.ok());
  EXPECT_EQ(Problems(), (Names{"q"})) << "a failure is in no list";
}

TEST_P(CacheStoreTest, ListsNewestFirstInPages) {
  for (int i = 0; i < 60; ++i) {
    CacheRow row = NewRow(std::to_string(i));
    row.environment = i % 2 == 0 ? "cpu=x" : "cpu=y";
    ASSERT_TRUE(db_->Put(row).ok());
  }
  EXPECT_EQ(Problems().size(), 50u) << "unless told otherwise";
  Names all;
  CacheStore::ListOptions options = {.environment = "cpu=x", .rows_max = 7};
  while (true) {
    const auto page = *db_->List(options);
    if (page.empty()) break;
    EXPECT_LE(page.size(), 7u);
    for (const auto& listed : page) all.push_back(listed.record.problem);
    options.before_row = page.back().row;
  }
  EXPECT_EQ(all, Problems({.environment = "cpu=x", .rows_max = 1000}));
  ASSERT_EQ(all.size(), 30u);
  EXPECT_EQ(all.front(), "58");
  EXPECT_EQ(all.back(), "0");
  const CacheStats stats = *db_->Stats();
  EXPECT_EQ(stats.measurements, 60);
  EXPECT_GE(stats.bytes, 0);
  using Environments = std::vector<std::pair<Environment, int64_t>>;
  EXPECT_EQ(stats.environments, (Environments{{"cpu=x", 30}, {"cpu=y", 30}}));
}

TEST_P(CacheStoreTest, AnotherNamespaceDisownsEverything) {
  const auto fill = [&] {
    ASSERT_TRUE(db_->Put(NewRow("p")).ok());
    ASSERT_TRUE(db_->PutModel({"key", "result", Sha256("output")}).ok());
    ASSERT_TRUE(db_->PutRegion(RegionOf("form", "entry")).ok());
  };
  const auto knows = [&] {
    const bool row = FindRow(*db_, "p").has_value(), answer = db_->FindModel("key").has_value();
    EXPECT_EQ(row, answer);
    EXPECT_EQ(row, db_->FindRegion("form", 1).has_value());
    EXPECT_EQ(db_->ListRegions({})->size(), row ? 1u : 0u);
    EXPECT_EQ(db_->Stats()->regions, row ? 1 : 0);
    EXPECT_EQ(Problems().size(), row ? 1u : 0u);
    EXPECT_EQ(Texts({}).size(), row ? 1u : 0u);
    EXPECT_EQ(db_->Stats()->measurements + db_->Stats()->models, row ? 2 : 0);
    return row;
  };
  fill();
  EXPECT_TRUE(knows());
  Reopen("a");
  EXPECT_FALSE(knows());
  fill();
  EXPECT_TRUE(knows());
  Reopen("b");
  EXPECT_FALSE(knows());
  EXPECT_EQ(db_->Forget({.all = true})->measurements, 0);
  // Whoever looks for what blobs are named sees all.
  Names keys;
  const auto visit = [&](const CacheStore::StoredAnswer& answer) {
    EXPECT_EQ(answer.result, "result");
    keys.push_back(answer.key);
  };
  ASSERT_TRUE(db_->ForEachAnswer(visit).ok());
  EXPECT_EQ(keys.size(), 2u);
  ASSERT_TRUE(db_->ForgetModels({keys[0], "unknown"}).ok());
  ASSERT_TRUE(db_->ForgetModels({keys[1]}).ok());
  Reopen();
  EXPECT_FALSE(db_->FindModel("key").has_value());
  EXPECT_TRUE(FindRow(*db_, "p").has_value()) << "the old name has the old rows";
}

TEST_P(CacheStoreTest, RemembersWholeAnswers) {
  ASSERT_TRUE(db_->PutModel(AnswerOf("key text", {"m", "cpu", "cpu=x", "ann"})).ok());
  ASSERT_TRUE(db_->PutModel({"key text", "newer", Sha256("output")}).ok());
  Reopen();
  EXPECT_EQ(db_->FindModel("key text")->result, "newer");
  EXPECT_EQ(db_->FindModel("key text")->output, Sha256("output"));
  EXPECT_EQ(db_->FindModel("key text")->of.model, "");
  EXPECT_FALSE(db_->FindModel("other").has_value());
  EXPECT_EQ(db_->Stats()->models, 1);
}

TEST_P(CacheStoreTest, TheRevisionGrowsWithEveryChangeOfAnAnswer) {
  uint64_t before = db_->answers_revision();
  const auto expect_grown = [&](const char* what) {
    EXPECT_GT(db_->answers_revision(), before) << what;
    before = db_->answers_revision();
  };
  ASSERT_TRUE(db_->PutModel(AnswerOf("a")).ok());
  expect_grown("put");
  ASSERT_TRUE(db_->ForgetModels({db_->ListModels({})->at(0).key}).ok());
  expect_grown("forget models");
  ASSERT_TRUE(db_->Forget({.all = true}).ok());
  expect_grown("forget");
}

TEST_P(CacheStoreTest, CountsAnswersThatWereGiven) {
  ASSERT_TRUE(db_->CountAnswers(3).ok());
  Reopen();
  ASSERT_TRUE(db_->CountAnswers(4).ok());
  EXPECT_EQ(db_->Stats()->answers, 7);
}

TEST_P(CacheStoreTest, ACopyHasTheRowsOfItsMoment) {
  ASSERT_TRUE(db_->Put(NewRow("p")).ok());
  const TempDir folder = *TempDir::Make("store-copy-");
  const Status saved = db_->SaveCopy(folder.path());
  if (!GetParam().saves_copies) {
    EXPECT_EQ(saved.code(), StatusCode::kUnimplemented);
    return;
  }
  ASSERT_TRUE(saved.ok()) << ToString(saved);
  ASSERT_TRUE(db_->Put(NewRow("late")).ok());
  const Store copy = *OpenStore({.folder = folder.path()}, place_->clock);
  EXPECT_TRUE(FindRow(*copy.cache, "p").has_value());
  EXPECT_FALSE(FindRow(*copy.cache, "late").has_value());
  EXPECT_FALSE(copy.cache->was_corrupt());
}

// Writers and readers at once: what a call acknowledged is there for every later call, whole.
TEST_P(CacheStoreTest, ThreadsSeeWhatWasAcknowledged) {
  constexpr int kWriters = 3, kRows = 20;
  std::atomic<int> writing = kWriters;
  std::vector<std::thread> threads;
  for (int w = 0; w < kWriters; ++w) {
    threads.emplace_back([&, w] {
      for (int i = 0; i < kRows; ++i) {
        const std::string name = fmt::format("{}-{}", w, i);
        EXPECT_TRUE(db_->Put(NewRow(name)).ok());
        EXPECT_TRUE(FindRow(*db_, name).has_value());
        EXPECT_TRUE(db_->Count(1, 0, {GroupKey("0-0", "cpu=x")}).ok());
        EXPECT_TRUE(db_->PutModel(AnswerOf(name)).ok());
        EXPECT_EQ(db_->FindModel(name)->result, "result of " + name);
        EXPECT_TRUE(db_->PutRegion(RegionOf(name, "entry of " + name)).ok());
        EXPECT_TRUE(db_->PutRegion(RegionOf("shared", "entry of shared")).ok());
        EXPECT_EQ(db_->FindRegion(name, 1)->entry, "entry of " + name);
      }
      --writing;
    });
  }
  threads.emplace_back([&] {
    while (writing > 0) {
      const std::vector<CacheStore::ListedAnswer> rows = *db_->ListModels({});
      for (const auto& row : rows) {
        EXPECT_EQ(row.answer.result, "result of " + row.answer.key_text);
      }
      const std::vector<CacheStore::ListedRegion> regions = *db_->ListRegions({});
      for (const auto& region : regions) {
        EXPECT_EQ(region.record.entry, "entry of " + region.record.depends_on);
      }
    }
  });
  for (std::thread& thread : threads) thread.join();
  Reopen();
  EXPECT_EQ(db_->Stats()->measurements, kWriters * kRows);
  EXPECT_EQ(db_->Stats()->models, kWriters * kRows);
  EXPECT_EQ(db_->Stats()->hits, kWriters * kRows);
  EXPECT_EQ(db_->Stats()->regions, kWriters * kRows + 1);
  EXPECT_EQ(db_->FindRegion("shared", 1)->models, kWriters * kRows);
}

}  // namespace
}  // namespace ag
