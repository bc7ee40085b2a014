#include "server/store/jobs_db.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/file.h"
#include "server/store/testing/fault_vfs.h"

namespace ag {
namespace {

struct JobsPlace {
  TempDir dir = *TempDir::Make("jobs-db-test-");
  FakeClock clock;
  std::string path = dir.path() + "/jobs.db";
  StatusOr<std::unique_ptr<JobsDb>> Open(const std::string& vfs = "") {
    return JobsDb::Open({path, vfs}, clock);
  }
};

JobRow NewJob(const std::string& key = "k") {
  JobRow row;
  row.state = "QUEUED";
  row.device = "cpu";
  row.request = std::string("re\0quest", 8);
  row.version = 1;
  row.dedupe_key = key;
  row.client = "somebody";
  return row;
}

TEST(JobsDb, RowsComeBackWhole) {
  JobsPlace place;
  auto db = *place.Open();
  JobRow row = NewJob();
  row.id = *db->Insert(row, "", "");
  row.state = "FAILED";
  row.terminal = true;
  row.result = "result";
  row.error_code = 3;
  row.error_message = "why";
  row.error_reason = "NO_WORKER";
  row.finished_unix_seconds = 7;
  row.version = 9;
  row.resumed = 2;
  row.crashes = 1;
  row.waiters = 3;
  row.cancel = true;
  ASSERT_TRUE(db->Update(row).ok());
  db.reset();
  db = *place.Open();
  const JobRow read = *db->Get(row.id);
  EXPECT_EQ(read.state, "FAILED");
  EXPECT_EQ(read.request, row.request);
  EXPECT_EQ(read.result, "result");
  EXPECT_EQ(read.error_message, "why");
  EXPECT_EQ(read.error_reason, "NO_WORKER");
  EXPECT_EQ(read.version, 9u);
  EXPECT_EQ(read.resumed, 2);
  EXPECT_EQ(read.crashes, 1);
  EXPECT_EQ(read.client, "somebody");
  EXPECT_EQ(read.waiters, 3);
  EXPECT_TRUE(read.cancel);
  EXPECT_TRUE(read.terminal);
}

TEST(JobsDb, TheEpochGrowsWithEveryStart) {
  JobsPlace place;
  for (uint64_t epoch = 1; epoch <= 3; ++epoch) EXPECT_EQ(*(*place.Open())->OpenEpoch(), epoch);
}

TEST(JobsDb, RequestIdsNameOneJobEach) {
  JobsPlace place;
  auto db = *place.Open();
  const int64_t id = *db->Insert(NewJob(), "first", "body");
  EXPECT_EQ((*db->FindRequestId("first"))->job, id);
  EXPECT_EQ((*db->FindRequestId("first"))->body_digest, "body");
  EXPECT_FALSE(db->FindRequestId("second")->has_value());
  EXPECT_FALSE(db->Insert(NewJob(), "first", "other").ok());
  EXPECT_EQ(db->List({})->size(), 1u) << "the refused insert left a row";
  ASSERT_TRUE(db->Join(id, "second", "body").ok());
  EXPECT_EQ((*db->FindRequestId("second"))->job, id);
  EXPECT_EQ(db->Get(id)->waiters, 2);
  ASSERT_TRUE(db->Leave(id, "second").ok());
  EXPECT_TRUE((*db->FindRequestId("second"))->left);
  EXPECT_FALSE((*db->FindRequestId("first"))->left);
  EXPECT_EQ(db->Get(id)->waiters, 1);
}

TEST(JobsDb, ListsNewestFirstInPages) {
  JobsPlace place;
  auto db = *place.Open();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(db->Insert(NewJob(), "", "").ok());
  const auto page = *db->List({.rows_max = 2});
  ASSERT_EQ(page.size(), 2u);
  EXPECT_EQ(page[0].id, 5);
  EXPECT_EQ((*db->List({.before_id = page[1].id, .rows_max = 9})).size(), 3u);
  EXPECT_TRUE(db->List({.state = "FAILED"})->empty());
}

TEST(JobsDb, FindsTheUnfinishedOfAKey) {
  JobsPlace place;
  auto db = *place.Open();
  JobRow row = NewJob("a");
  row.id = *db->Insert(row, "", "");
  EXPECT_EQ((*db->FindUnfinished("a"))->id, row.id);
  EXPECT_FALSE(db->FindUnfinished("b")->has_value());
  row.terminal = true;
  ASSERT_TRUE(db->Update(row).ok());
  EXPECT_FALSE(db->FindUnfinished("a")->has_value());
  EXPECT_TRUE(db->Unfinished()->empty());
}

TEST(JobsDb, UnknownJobsAreNotFound) {
  JobsPlace place;
  auto db = *place.Open();
  EXPECT_EQ(Message(db->Get(7).status()), "no job jobs/7");
  JobRow row = NewJob();
  row.id = 7;
  EXPECT_EQ(db->Update(row).code(), StatusCode::kNotFound);
}

TEST(JobsDb, ACorruptFileStopsTheStart) {
  JobsPlace place;
  std::ofstream(place.path) << std::string(8192, 'x');
  const auto db = place.Open();
  EXPECT_EQ(db.status().code(), StatusCode::kDataLoss);
  EXPECT_NE(Message(db.status()).find("the jobs file is corrupt"), std::string::npos);
  EXPECT_NE(Message(db.status()).find(place.path), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(place.path)) << "it was moved";
}

TEST(JobsDb, AnotherSchemaIsRefusedAndKept) {
  const std::pair<const char*, const char*> cases[] = {
      {"99", "99 is newer than this program's 8; use the newer program"},
      {"2",
       "2 is older than the oldest that this program reads, 3; move it away to begin without "
       "jobs"}};
  for (const auto& [version, message] : cases) {
    JobsPlace place;
    ASSERT_TRUE(place.Open().ok());
    sqlite3* raw = nullptr;
    ASSERT_EQ(sqlite3_open(place.path.c_str(), &raw), SQLITE_OK);
    const std::string change = std::string("PRAGMA user_version=") + version;
    ASSERT_EQ(sqlite3_exec(raw, change.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(raw);
    for (int attempt = 0; attempt < 2; ++attempt) {
      EXPECT_EQ(ToString(place.Open().status()),
                "FAILED_PRECONDITION: jobs file: " + place.path + ": schema version " + message);
    }
  }
}

TEST(JobsDb, AFileOfVersion3KeepsItsJobs) {
  JobsPlace place;
  const int64_t id = *(*place.Open())->Insert(NewJob(), "", "");
  sqlite3* raw = nullptr;
  ASSERT_EQ(sqlite3_open(place.path.c_str(), &raw), SQLITE_OK);
  const char* back =
      "ALTER TABLE jobs DROP COLUMN crashes; ALTER TABLE jobs DROP COLUMN client;"
      "DROP INDEX jobs_tenant; ALTER TABLE jobs DROP COLUMN tenant; DROP TABLE blob_tenants;"
      "ALTER TABLE jobs DROP COLUMN device_seconds; DROP TABLE device_use;"
      "ALTER TABLE jobs DROP COLUMN error_reason;"
      "ALTER TABLE jobs DROP COLUMN waiters; ALTER TABLE request_ids DROP COLUMN has_left;"
      "DELETE FROM migrations WHERE version > 3; PRAGMA user_version=3";
  ASSERT_EQ(sqlite3_exec(raw, back, nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(raw);
  const auto db = place.Open();
  ASSERT_TRUE(db.ok()) << ToString(db.status());
  EXPECT_EQ((*db)->Get(id)->crashes, 0);
  EXPECT_EQ((*db)->Get(id)->waiters, 1);
  EXPECT_EQ((*db)->Get(id)->tenant, "");
  EXPECT_EQ((*db)->Get(id)->error_reason, "");
}

TEST(JobsDb, ListsTheJobsOfATenant) {
  JobsPlace place;
  auto db = *place.Open();
  std::map<std::string, std::vector<int64_t>> ids;  // Newest first.
  for (const char* tenant : {"alice", "bob", "", "alice"}) {
    JobRow row = NewJob();
    row.tenant = tenant;
    ids[tenant].insert(ids[tenant].begin(), *db->Insert(row, "", ""));
  }
  for (const auto& [tenant, own] : ids) {
    std::vector<int64_t> listed;
    const std::vector<JobRow> rows = *db->List({.tenant = tenant});
    for (const JobRow& row : rows) {
      listed.push_back(row.id);
      EXPECT_EQ(row.tenant, tenant);
    }
    EXPECT_EQ(listed, own);
  }
  EXPECT_EQ(db->List({})->size(), 4u);
}

TEST(JobsDb, ABlobHasItsTenants) {
  JobsPlace place;
  auto db = *place.Open();
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(db->OwnBlob("alice", "d1").ok());
  ASSERT_TRUE(db->OwnBlob("bob", "d2").ok());
  db.reset();
  db = *place.Open();
  EXPECT_TRUE(*db->OwnsBlob("alice", "d1"));
  EXPECT_TRUE(*db->OwnsBlob("bob", "d2"));
  EXPECT_FALSE(*db->OwnsBlob("bob", "d1"));
  EXPECT_FALSE(*db->OwnsBlob("alice", "d2"));
  EXPECT_FALSE(*db->OwnsBlob("", "d1"));
}

TEST(JobsDb, ASecondConnectionIsRefused) {
  JobsPlace place;
  auto db = *place.Open();
  ASSERT_TRUE(db->OpenEpoch().ok());
  EXPECT_EQ(place.Open().status().code(), StatusCode::kUnavailable);
}

// For every n, the n-th write or sync and all later ones fail. Every row that was acknowledged
// before is there afterwards, and nothing else is.
TEST(JobsDb, NothingAcknowledgedIsLostWhenAWriteFails) {
  for (const int code : {SQLITE_FULL, SQLITE_IOERR}) {
    for (int nth = 1; nth < 90; ++nth) {
      JobsPlace place;
      SetVfsFault({nth, code});
      std::vector<int64_t> acknowledged;
      int64_t updated = 0;
      if (auto db = place.Open(kFaultVfs); db.ok()) {
        for (int i = 0; i < 5; ++i) {
          JobRow row = NewJob();
          const auto id = (*db)->Insert(row, fmt::format("request-{}", i), "body");
          if (!id.ok()) continue;
          acknowledged.push_back(*id);
          row.id = *id;
          row.state = "SUCCEEDED";
          if ((*db)->Update(row).ok()) updated = *id;
        }
      }
      SetVfsFault({});
      auto db = *place.Open(kFaultVfs);
      for (const int64_t id : acknowledged) {
        ASSERT_TRUE(db->Get(id).ok()) << "job " << id << " lost, failure at " << nth;
        if (id <= updated) {
          EXPECT_EQ(db->Get(id)->state, "SUCCEEDED") << nth;
        }
      }
    }
  }
}

}  // namespace
}  // namespace ag
