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
  EXPECT_EQ(Message(db->Import(rows).status()), "record 2: measurement: a time of -1 ns");
  EXPECT_EQ(db->Stats()->measurements, 1);
  rows.pop_back();
  EXPECT_EQ(db->Import(rows)->added, 1);
  EXPECT_EQ(db->Import(rows)->known, 2);
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
