#include "server/store/cache_db.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>

#include "base/digest_count.h"
#include "base/file.h"
#include "plan/fusion/group_problem.h"
#include "server/store/testing/store_engines.h"

namespace ag {
namespace {

struct CachePlace {
  TempDir dir = *TempDir::Make("cache-db-test-");
  FakeClock clock;
  std::string path = dir.path() + "/cache.db";
  StatusOr<std::unique_ptr<CacheStore>> Open() {
    CacheDbOptions options;
    options.path = path;
    return OpenCacheDb(options, clock);
  }
  void Sql(const std::string& sql) {
    sqlite3* raw = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &raw), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(raw, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(raw);
    sqlite3_close(raw);
  }
};

TEST(CacheDb, AHitComparesTheBytes) {
  CachePlace place;
  ASSERT_TRUE((*place.Open())->Put(NewRow("p")).ok());
  // Acts as if another problem had the same digest.
  place.Sql("UPDATE measurements SET key = '" + GroupKey("q", "cpu=x").Hex() + "'");
  EXPECT_FALSE(FindRow(**place.Open(), "q").has_value());
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
    ASSERT_TRUE((*place.Open())->Put(NewRow("p")).ok());
    place.Sql(std::string("UPDATE measurements SET ") + damage);
    auto db = *place.Open();
    EXPECT_FALSE(FindRow(*db, "p").has_value()) << damage;
    EXPECT_TRUE(db->List({})->empty()) << damage;
    ASSERT_TRUE(db->Put(NewRow("p")).ok());
    EXPECT_TRUE(FindRow(*db, "p").has_value()) << damage;
  }
}

TEST(CacheDb, ACorruptRegionIsAMiss) {
  const RegionRow region = {.depends_on = "form=a", .environment = "cpu=x", .entry = "entry"};
  for (const char* damage : {"entry = x''", "entry = x'656e74727a'", "depends_on = x'71'",
                             "environment = ''", "checksum = ''", "namespace = 'n'"}) {
    CachePlace place;
    ASSERT_TRUE((*place.Open())->PutRegion(region).ok());
    place.Sql(std::string("UPDATE regions SET ") + damage);
    auto db = *place.Open();
    EXPECT_FALSE(db->FindRegion("form=a", 1).has_value()) << damage;
    EXPECT_TRUE(db->ListRegions({})->empty()) << damage;
  }
  CachePlace place;
  ASSERT_TRUE((*place.Open())->PutRegion(region).ok());
  place.Sql("UPDATE regions SET entry = x''");
  ASSERT_TRUE((*place.Open())->PutRegion(region).ok());
  EXPECT_EQ((*place.Open())->FindRegion("form=a", 1)->entry, "entry") << "put anew";
  // Acts as if another region had the same digest.
  place.Sql("UPDATE regions SET key = '" + Sha256("form=b").Hex() + "'");
  EXPECT_FALSE((*place.Open())->FindRegion("form=b", 1).has_value());
}

TEST(CacheDb, TheRegionsThatWereNotUsedForLongestGo) {
  const TempDir folder = *TempDir::Make("cache-regions-");
  FakeClock clock;
  const auto db = *OpenCacheDb({.path = folder.path() + "/cache.db", .regions_max = 3}, clock);
  const auto put = [&](const std::string& name) {
    clock.Advance(std::chrono::seconds(1));
    ASSERT_TRUE(db->PutRegion({.depends_on = name, .environment = "e", .entry = name}).ok());
  };
  for (const char* name : {"a", "b", "c"}) put(name);
  clock.Advance(std::chrono::seconds(1));
  EXPECT_TRUE(db->FindRegion("a", 1).has_value());
  put("b");  // Known: none goes.
  put("d");
  EXPECT_FALSE(db->FindRegion("c", 1).has_value());
  for (const char* name : {"a", "b", "d"}) {
    EXPECT_TRUE(db->FindRegion(name, 1).has_value()) << name;
  }
  EXPECT_EQ(db->Stats()->regions, 3);
}

TEST(CacheDb, ACorruptFileIsSetAside) {
  CachePlace place;
  for (int n = 1; n <= 2; ++n) {
    std::ofstream(place.path) << std::string(8192, 'x');
    auto db = *place.Open();
    EXPECT_TRUE(std::filesystem::exists(fmt::format("{}.corrupt-{}", place.path, n)));
    EXPECT_TRUE(db->Put(NewRow("p")).ok());
  }
}

TEST(CacheDb, ADamagedPageSetsTheFileAside) {
  CachePlace place;
  {
    auto db = *place.Open();
    for (int i = 0; i < 300; ++i) {
      ASSERT_TRUE(db->Put(NewRow(std::string(200, 'a') + std::to_string(i))).ok());
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
  ASSERT_TRUE((*place.Open())->Put(NewRow("p")).ok());
  place.Sql("PRAGMA user_version=2");
  auto db = *place.Open();
  EXPECT_TRUE(std::filesystem::exists(place.path + ".old-1"));
  EXPECT_FALSE(FindRow(*db, "p").has_value());
  EXPECT_TRUE(db->Put(NewRow("p")).ok());
}

// One digest is the key's, the other one the checksum's.
TEST(CacheDb, AHitIsOneReadWithTwoDigests) {
  CachePlace place;
  auto db = *place.Open();
  ASSERT_TRUE(db->Put(NewRow("p")).ok());
  const uint64_t before = DigestsComputed();
  EXPECT_TRUE(FindRow(*db, "p").has_value());
  EXPECT_EQ(DigestsComputed() - before, 2u);
}

TEST(CacheDb, ACorruptAnswerIsAMiss) {
  CachePlace place;
  for (const char* text : {"a", "b"}) {
    const ModelAnswer answer = {text, "result", Sha256("output"), {.model = text}};
    ASSERT_TRUE((*place.Open())->PutModel(answer).ok());
  }
  place.Sql("UPDATE model_answers SET result = 'forged' WHERE model = 'a'");
  auto db = *place.Open();
  EXPECT_FALSE(db->FindModel("a").has_value());
  EXPECT_TRUE(db->FindModel("b").has_value());
  const auto rows = *db->ListModels({});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].answer.key_text, "b");
}

}  // namespace
}  // namespace ag
