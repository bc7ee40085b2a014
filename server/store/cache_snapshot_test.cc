// A cache, its snapshot, and another cache on top of it.
#include "server/store/cache_snapshot.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <functional>

#include "base/file.h"
#include "base/file_ops.h"
#include "plan/fusion/group_problem.h"
#include "server/store/cache_db.h"
#include "server/store/testing/fault_vfs.h"
#include "server/store/testing/store_engines.h"

namespace ag {
namespace {

using namespace std::chrono_literals;

using Names = std::vector<std::string>;

CacheRow Row(const std::string& problem, double median_ns = 100) {
  CacheRow row;
  row.problem = problem;
  row.environment = "cpu=x";
  row.measurement = {{median_ns, median_ns, median_ns}, 21, 1, 5, "kernel", {}, false};
  row.summary = "conv: Conv";
  return row;
}

// A clock that advances by a second each time it is read.
class SlowClock : public FakeClock {
 public:
  Nanos Now() override {
    Advance(1s);
    return FakeClock::Now();
  }
};

class CacheSnapshotTest : public testing::Test {
 protected:
  std::unique_ptr<CacheStore> OpenHolder() {
    CacheDbOptions options;
    options.path = holder_path_;
    options.snapshot = snapshot_;
    return *OpenCacheDb(options, clock_);
  }
  std::unique_ptr<CacheStore> OpenOverlay() {
    CacheDbOptions options;
    options.path = folder_.path() + "/overlay.db";
    options.base = snapshot_;
    return *OpenCacheDb(options, clock_);
  }
  Names Problems(CacheStore& db, const CacheStore::ListOptions& options = {}) {
    Names names;
    const std::vector<CacheStore::Listed> rows = *db.List(options);
    for (const CacheStore::Listed& listed : rows) names.push_back(listed.record.problem);
    return names;
  }

  const TempDir folder_ = *TempDir::Make("cache snapshot?100%#");  // A URI needs these escaped.
  const std::string holder_path_ = folder_.path() + "/cache.db";
  const std::string snapshot_ = folder_.path() + "/cache.snapshot";
  FakeClock clock_;
};

TEST_F(CacheSnapshotTest, TheOverlayKnowsWhatTheHolderMeasured) {
  const auto holder = OpenHolder();
  ASSERT_TRUE(holder->Put(Row("a")).ok());
  ASSERT_TRUE(holder->PutModel({"key", "result", Sha256("output")}).ok());
  ASSERT_TRUE(holder->PutRegion({.depends_on = "form", .entry = "theirs"}).ok());
  ASSERT_TRUE(holder->Count(3, 4, {}).ok());
  ASSERT_TRUE(holder->WriteSnapshot().ok());
  ASSERT_TRUE(holder->Put(Row("late")).ok());

  const auto overlay = OpenOverlay();  // The holder is still open.
  EXPECT_EQ(ToString(overlay->base().status), "OK");
  EXPECT_EQ(overlay->base().measurements, 1);
  EXPECT_EQ(FindRow(*overlay, "a", "cpu=x")->measurement.latency.median_ns, 100);
  EXPECT_EQ(overlay->FindModel("key")->result, "result");
  EXPECT_FALSE(FindRow(*overlay, "late", "cpu=x").has_value());
  EXPECT_EQ(overlay->Stats()->measurements, 1);
  EXPECT_EQ(overlay->Stats()->models, 1);
  EXPECT_EQ(overlay->Stats()->regions, 1);
  EXPECT_EQ(overlay->FindRegion("form", 1)->entry, "theirs");
  ASSERT_TRUE(overlay->PutRegion({.depends_on = "form", .entry = "ours"}).ok());
  EXPECT_EQ(overlay->FindRegion("form", 1)->entry, "ours");
  EXPECT_EQ(overlay->ListRegions({})->size(), 1u);
  EXPECT_EQ(holder->FindRegion("form", 1)->entry, "theirs");
  EXPECT_EQ(overlay->Stats()->hits, 3);
  EXPECT_EQ(overlay->Stats()->misses, 4);
}

TEST_F(CacheSnapshotTest, WhatTheOverlayAddsStaysAbove) {
  const auto holder = OpenHolder();
  ASSERT_TRUE(holder->Import({Row("a"), Row("b")}, "me").ok());
  ASSERT_TRUE(holder->PutModel({"key", "result", Sha256("output")}).ok());
  ASSERT_TRUE(holder->WriteSnapshot().ok());
  const std::string before = *ReadFile(snapshot_);

  const auto overlay = OpenOverlay();
  const auto imported = overlay->Import({Row("a", 7), Row("c")}, "me");
  EXPECT_EQ(imported->known, 1);
  EXPECT_EQ(imported->added, 1);
  ASSERT_TRUE(overlay->Put(Row("b", 50)).ok());
  ASSERT_TRUE(overlay->PutModel({"key", "ours", Sha256("output")}).ok());
  ASSERT_TRUE(overlay->Count(1, 0, {GroupKey("a", "cpu=x"), GroupKey("c", "cpu=x")}).ok());
  EXPECT_EQ(FindRow(*overlay, "b", "cpu=x")->measurement.latency.median_ns, 50);
  EXPECT_EQ(overlay->FindModel("key")->result, "ours");
  EXPECT_EQ(FindRow(*overlay, "c", "cpu=x")->hits, 1);
  EXPECT_EQ(Problems(*overlay), Names({"b", "c", "a"}));  // Newest first, each once.
  EXPECT_EQ(overlay->Stats()->measurements, 3);

  EXPECT_EQ(*ReadFile(snapshot_), before);
  EXPECT_EQ(FindRow(*holder, "b", "cpu=x")->measurement.latency.median_ns, 100);
  EXPECT_FALSE(FindRow(*holder, "c", "cpu=x").has_value());
  EXPECT_EQ(*ListDir(folder_.path()),
            Names({"cache.db", "cache.db-wal", "cache.snapshot", "overlay.db", "overlay.db-wal"}));
}

TEST_F(CacheSnapshotTest, PagesRunThroughBothFiles) {
  const auto holder = OpenHolder();
  ASSERT_TRUE(holder->Import({Row("1"), Row("2"), Row("3")}, "me").ok());
  ASSERT_TRUE(holder->WriteSnapshot().ok());
  const auto overlay = OpenOverlay();
  ASSERT_TRUE(overlay->Import({Row("4"), Row("5")}, "me").ok());
  Names names;
  CacheStore::ListOptions options = {.rows_max = 2};
  while (true) {
    const auto page = *overlay->List(options);
    if (page.empty()) break;
    for (const CacheStore::Listed& listed : page) names.push_back(listed.record.problem);
    options.before_row = page.back().row;
  }
  EXPECT_EQ(names, Names({"5", "4", "3", "2", "1"}));
}

TEST_F(CacheSnapshotTest, ABaseThatCannotBeReadIsLeftOut) {
  const auto holder = OpenHolder();
  ASSERT_TRUE(holder->Put(Row("a")).ok());
  ASSERT_TRUE(holder->WriteSnapshot().ok());
  const std::string whole = *ReadFile(snapshot_);
  std::string newer = whole;
  newer.replace(60, 4, std::string("\0\0\0\x63", 4));  // PRAGMA user_version in the header.
  std::string torn = whole;
  torn.replace(4096, 4096, std::string(4096, '\xff'));
  const struct {
    const char* name;
    std::string bytes;
    std::string error;
  } cases[] = {
      {"not a database", std::string(8192, 'x'), "DATA_LOSS: "},
      {"empty", "", "FAILED_PRECONDITION: " + snapshot_ + ": schema version 0, expected 7"},
      {"a damaged page", torn, "DATA_LOSS: " + snapshot_},
      {"half", whole.substr(0, 8192), "DATA_LOSS: "},
      {"newer schema", newer,
       "FAILED_PRECONDITION: " + snapshot_ + ": schema version 99, expected 7"},
  };
  for (const auto& c : cases) {
    ASSERT_TRUE(WriteFileAtomically(snapshot_, c.bytes).ok());
    const auto overlay = OpenOverlay();
    EXPECT_TRUE(ToString(overlay->base().status).starts_with(c.error))
        << c.name << ": " << ToString(overlay->base().status);
    EXPECT_EQ(overlay->base().measurements, 0) << c.name;
    EXPECT_FALSE(FindRow(*overlay, "a", "cpu=x").has_value()) << c.name;
    EXPECT_TRUE(overlay->Put(Row("b")).ok()) << c.name;
    EXPECT_EQ(Problems(*overlay), Names({"b"})) << c.name;
  }
  std::filesystem::remove(snapshot_);
  EXPECT_EQ(ToString(OpenOverlay()->base().status), "NOT_FOUND: " + snapshot_ + ": no such file");
}

TEST_F(CacheSnapshotTest, ASnapshotIsDueASecondAfterTheFirstWriteItLacks) {
  const auto holder = OpenHolder();
  EXPECT_FALSE(holder->SnapshotIsDue());  // A second after the start at the earliest.
  clock_.Advance(1s);
  EXPECT_TRUE(holder->SnapshotIsDue());  // There is no snapshot yet.
  ASSERT_TRUE(holder->WriteSnapshot().ok());
  EXPECT_FALSE(holder->SnapshotIsDue());

  for (const char* problem : {"a", "b", "c"}) {  // A writer without pauses makes it due as well.
    ASSERT_TRUE(holder->Put(Row(problem)).ok());
    EXPECT_FALSE(holder->SnapshotIsDue());
    clock_.Advance(333ms);
  }
  EXPECT_FALSE(holder->SnapshotIsDue());
  clock_.Advance(1ms);
  EXPECT_TRUE(holder->SnapshotIsDue());
  ASSERT_TRUE(holder->WriteSnapshot().ok());
  EXPECT_FALSE(holder->SnapshotIsDue());
}

TEST_F(CacheSnapshotTest, ASlowCopyIsMadeSeldom) {
  SlowClock clock;
  CacheDbOptions options;
  options.path = holder_path_;
  options.snapshot = snapshot_;
  const auto holder = *OpenCacheDb(options, clock);
  ASSERT_TRUE(holder->WriteSnapshot().ok());  // Takes a second, so none is due for 49 more.
  ASSERT_TRUE(holder->Put(Row("a")).ok());    // Takes the first of them.
  for (int second = 2; second < 49; ++second) EXPECT_FALSE(holder->SnapshotIsDue()) << second;
  EXPECT_TRUE(holder->SnapshotIsDue());
}

TEST_F(CacheSnapshotTest, EveryKindOfWriteMakesItDue) {
  const auto holder = OpenHolder();
  const std::pair<const char*, std::function<Status()>> writes[] = {
      {"put", [&] { return holder->Put(Row("a")); }},
      {"import", [&] { return holder->Import({Row("b")}, "me").status(); }},
      {"region", [&] { return holder->PutRegion({.depends_on = "form", .entry = "entry"}); }},
      {"answer",
       [&] {
         return holder->PutModel({"key", "result", Sha256("output")});
       }},
  };
  for (const auto& [name, write] : writes) {
    ASSERT_TRUE(holder->WriteSnapshot().ok());
    ASSERT_TRUE(write().ok());
    clock_.Advance(1s);
    EXPECT_TRUE(holder->SnapshotIsDue()) << name;
  }
  ASSERT_TRUE(holder->WriteSnapshot().ok());
  ASSERT_TRUE(holder->Count(1, 1, {}).ok());
  EXPECT_EQ(holder->Import({Row("b")}, "me")->added, 0);
  clock_.Advance(1s);
  EXPECT_FALSE(holder->SnapshotIsDue()) << "nothing new was written";
}

TEST_F(CacheSnapshotTest, AStartRenewsOnlyAnOldSnapshot) {
  ASSERT_TRUE(OpenHolder()->Put(Row("a")).ok());
  const auto due = [&] {
    const auto holder = OpenHolder();
    clock_.Advance(1s);
    const bool answer = holder->SnapshotIsDue();
    EXPECT_TRUE(!answer || holder->WriteSnapshot().ok());
    return answer;
  };
  EXPECT_TRUE(due());
  EXPECT_FALSE(due());
  ASSERT_TRUE(OpenHolder()->Put(Row("a")).ok());  // Replaces.
  EXPECT_TRUE(due());
  EXPECT_FALSE(due());
  ASSERT_TRUE(OpenHolder()->PutModel({"key", "result", Sha256("output")}).ok());
  EXPECT_TRUE(due());
  EXPECT_FALSE(due());
  ASSERT_TRUE(WriteFileAtomically(snapshot_, "torn").ok());
  EXPECT_TRUE(due());
}

TEST_F(CacheSnapshotTest, AnOpenOverlayKeepsTheSnapshotItBeganWith) {
  const auto holder = OpenHolder();
  ASSERT_TRUE(holder->Put(Row("a")).ok());
  ASSERT_TRUE(holder->WriteSnapshot().ok());
  const auto overlay = OpenOverlay();
  ASSERT_TRUE(holder->Put(Row("b")).ok());
  ASSERT_TRUE(holder->WriteSnapshot().ok());
  EXPECT_TRUE(FindRow(*overlay, "a", "cpu=x").has_value());
  EXPECT_FALSE(FindRow(*overlay, "b", "cpu=x").has_value());
}

TEST_F(CacheSnapshotTest, WhatAKilledCopyLeftIsReplaced) {
  const auto holder = OpenHolder();
  ASSERT_TRUE(holder->Put(Row("a")).ok());
  ASSERT_TRUE(WriteFileAtomically(snapshot_ + ".new", std::string(5000, 'x')).ok());
  ASSERT_TRUE(WriteFileAtomically(snapshot_ + ".new-journal", std::string(5000, 'x')).ok());
  EXPECT_EQ(ToString(holder->WriteSnapshot()), "OK");
  EXPECT_EQ(*ListDir(folder_.path()), Names({"cache.db", "cache.db-wal", "cache.snapshot"}));
  EXPECT_TRUE(FindRow(*OpenOverlay(), "a", "cpu=x").has_value());
}

// Whichever write fails: the old snapshot stays whole, no other file is left, and the holder goes
// on.
TEST_F(CacheSnapshotTest, AFailedCopyLeavesTheOldOne) {
  const FaultVfs vfs;
  const auto holder = OpenHolder();
  ASSERT_TRUE(holder->Put(Row("a")).ok());
  ASSERT_TRUE(holder->WriteSnapshot().ok());
  std::string before = *ReadFile(snapshot_);
  int failed = 0;
  bool fired = true;
  for (int nth = 1; fired; ++nth) {
    ASSERT_TRUE(holder->Put(Row("b", nth)).ok());
    Status written;
    {
      const file_ops::FileFault fault({.n = nth, .error = ENOSPC});
      written = holder->WriteSnapshot();
      fired = fault.Fired();
    }
    if (!written.ok()) {
      ++failed;
      EXPECT_EQ(written.code(), StatusCode::kResourceExhausted) << nth;
      EXPECT_EQ(*ReadFile(snapshot_), before) << nth;
    }
    before = *ReadFile(snapshot_);
    EXPECT_EQ(*ListDir(folder_.path()), Names({"cache.db", "cache.db-wal", "cache.snapshot"}))
        << nth;
    EXPECT_EQ(FindRow(*holder, "b")->measurement.latency.median_ns, nth) << nth;
  }
  EXPECT_GT(failed, 10);
  EXPECT_TRUE(FindRow(*OpenOverlay(), "b").has_value());
}

}  // namespace
}  // namespace ag
