#include "server/store/jobs_db.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/file.h"
#include "base/file_ops.h"
#include "server/store/testing/fault_vfs.h"
#include "server/store/testing/store_engines.h"

namespace ag {
namespace {

struct JobsPlace {
  TempDir dir = *TempDir::Make("jobs-db-test-");
  FakeClock clock;
  std::string path = dir.path() + "/jobs.db";
  StatusOr<std::unique_ptr<JobsStore>> Open() { return OpenJobsDb(path, clock); }
  // Copies the files as they are, as a kill -9 leaves them.
  void CopyTo(const JobsPlace& other) const {
    for (const char* suffix : {"", "-wal"}) {
      std::filesystem::copy_file(path + suffix, other.path + suffix);
    }
  }
};

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

TEST(JobsDb, ASecondConnectionIsRefused) {
  JobsPlace place;
  auto db = *place.Open();
  ASSERT_TRUE(db->OpenEpoch().ok());
  EXPECT_EQ(place.Open().status().code(), StatusCode::kUnavailable);
}

TEST(JobsDb, EachWriteIsObservedOnce) {
  JobsPlace place;
  int writes = 0;
  const auto db = *OpenJobsDb(place.path, place.clock, [&](Nanos took) {
    EXPECT_GE(took, Nanos{0});
    ++writes;
  });
  const int of_open = writes;
  EXPECT_GT(of_open, 0);
  ASSERT_TRUE(db->CountByState().ok());
  EXPECT_EQ(writes, of_open) << "a look is no write";
  ASSERT_TRUE(db->OpenEpoch().ok());
  EXPECT_EQ(writes, of_open + 1);
}

// What a power cut may undo was not acknowledged.
TEST(JobsDb, WhatIsAcknowledgedIsSynced) {
  const FaultVfs vfs;
  JobsPlace place;
  auto db = *place.Open();
  JobRow row = NewJob();
  row.terminal = true;
  const std::pair<const char*, std::function<Status()>> calls[] = {
      {"OpenEpoch", [&] { return db->OpenEpoch().status(); }},
      {"Insert", [&] { return db->Insert(row, "first", "body").status(); }},
      {"Update", [&] { return row.id = 1, db->Update(row); }},
      {"Join", [&] { return db->Join(1, "second", "body"); }},
      {"Leave", [&] { return db->Leave(1, "second"); }},
      {"AddDeviceUse",
       [&] {
         return db->AddDeviceUse({"alice", 1, 1}, 0);
       }},
      {"OwnBlob", [&] { return db->OwnBlob("alice", "d"); }},
      {"DisownBlob", [&] { return db->DisownBlob("d", ""); }},
      {"Remove", [&] { return db->Remove({1}); }},
  };
  for (const auto& [name, call] : calls) {
    ASSERT_TRUE(call().ok()) << name;
    EXPECT_EQ(FaultVfs::UnsyncedWrites(place.path + "-wal"), 0) << name;
    EXPECT_EQ(FaultVfs::UnsyncedWrites(place.path), 0) << name;
  }
}

// A result of 15 pages.
std::string ResultOf(uint64_t version) {
  return std::string(60'000, static_cast<char>('0' + version));
}

// The log has grown so long (1,000 pages) that a write copies it into the file, and the n-th call
// fails, alone (odd n) or with all later ones.
TEST(JobsDb, AFailureWhileTheLogIsCopiedLosesNothing) {
  const FaultVfs vfs;
  JobsPlace origin;
  const auto before = *origin.Open();
  JobRow row = NewJob();
  row.id = *before->Insert(row, "", "");
  const auto update = [&row](JobsStore& db) {
    row.result = ResultOf(row.version);
    return db.Update(row);
  };
  while (std::filesystem::file_size(origin.path + "-wal") < size_t{970 * 4120}) {
    ++row.version;
    ASSERT_TRUE(update(*before).ok());
  }
  const uint64_t kept = row.version;
  const auto bytes = std::filesystem::file_size(origin.path);
  ASSERT_LT(bytes, 60'000u) << "the log was copied already";
  bool fired = true;
  int n = 1;
  for (; fired; ++n) {
    JobsPlace place;
    origin.CopyTo(place);
    auto db = *place.Open();
    uint64_t acknowledged = kept;
    {
      const file_ops::FileFault fault({.n = n, .error = ENOSPC, .all_later = n % 2 == 0});
      for (row.version = kept + 1; row.version <= kept + 3; ++row.version) {
        const Status updated = update(*db);
        EXPECT_TRUE(updated.ok() || IsHostFault(updated)) << ToString(updated);
        if (updated.ok()) acknowledged = row.version;
      }
      fired = fault.Fired();
      EXPECT_EQ(db->Get(row.id)->version, acknowledged) << n;
      EXPECT_TRUE(fired || std::filesystem::file_size(place.path) > bytes) << "no log was copied";
      db.reset();
    }
    db = *place.Open();
    const uint64_t read = db->Get(row.id)->version;
    EXPECT_GE(read, acknowledged) << n;
    EXPECT_EQ(db->Get(row.id)->result, ResultOf(read)) << n;
  }
  EXPECT_GT(n, 100);
}

TEST(JobsDb, FilesOfAKilledProcessHaveWhatWasAcknowledged) {
  JobsPlace place, after;
  auto db = *place.Open();
  const int64_t id = *db->Insert(NewJob(), "first", "body");
  place.CopyTo(after);
  db = *after.Open();
  EXPECT_EQ(db->Get(id)->request, NewJob().request);
  EXPECT_EQ((*db->FindRequestId("first"))->job, id);
}

}  // namespace
}  // namespace ag
