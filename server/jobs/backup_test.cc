#include "server/jobs/backup.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "server/store/open_store.h"
#include "server/store/testing/store_engines.h"

namespace ag {
namespace {

// An interrupted call has left logs of another store.
TEST(RestoreStore, TakesNothingOfAnEarlierCall) {
  const TempDir dir = *TempDir::Make("restore-");
  const std::string backup = dir.path() + "/backup", other = dir.path() + "/other",
                    target = dir.path() + "/target";
  for (const auto& folder : {backup, other, target}) std::filesystem::create_directory(folder);
  FakeClock clock;
  for (const bool is_other : {false, true}) {
    const Store store = *OpenStore({.folder = is_other ? other : backup}, clock);
    JobRow row = NewJob();
    row.request.clear();
    row.client = is_other ? "other" : "ann";
    ASSERT_TRUE(store.jobs->Insert(row, "", "").ok());
    if (!is_other) continue;
    // As a kill -9 leaves it.
    for (const char* log : {"/jobs.db-wal", "/cache.db-wal"}) {
      std::filesystem::copy_file(other + log, target + log);
    }
  }
  const auto restored = RestoreStore(backup, target, clock);
  ASSERT_TRUE(restored.ok()) << ToString(restored.status());
  const Store store = *OpenStore({.folder = target}, clock);
  EXPECT_EQ(store.jobs->Get(1)->client, "ann");
  EXPECT_EQ(store.jobs->List({})->size(), 1u);
}

}  // namespace
}  // namespace ag
