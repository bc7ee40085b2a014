#include "server/pipeline/stored_regions.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "server/store/open_store.h"

namespace ag {
namespace {

class StoredRegionsTest : public ::testing::Test {
 protected:
  static RegionEntry SomeEntry() {
    return {.operators = 2, .estimate_ns = 90, .results = {{{{"rule", {{1, 2}}}}, 50}}};
  }

  const TempDir folder_ = *TempDir::Make("stored-regions-");
  FakeClock clock_;
  Store store_ = *OpenStore({.folder = folder_.path()}, clock_);
  GroupCache& cache_ = *store_.cache;
  const RegionKey key_ = {"cpu=x", "form=a\nenvironment=cpu=x\n"};
};

TEST_F(StoredRegionsTest, WhatOneJobPutsAnotherFinds) {
  StoredRegions first(cache_, {}), second(cache_, {});
  EXPECT_EQ(first.Find(key_, 3).status().code(), StatusCode::kNotFound);
  ASSERT_TRUE(first.Put(key_, SomeEntry(), 3).ok());
  const StatusOr<RegionEntry> found = second.Find(key_, 4);
  ASSERT_TRUE(found.ok()) << Message(found.status());
  EXPECT_EQ(*found, SomeEntry());
  const auto listed = *store_.cache->ListRegions({.environment = "cpu=x"});
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].key, key_.digest().Hex());
  EXPECT_EQ(listed[0].record.copies, 7);
  EXPECT_EQ(listed[0].record.models, 2);
}

TEST_F(StoredRegionsTest, OneThatSkipsFindsNothingAndPuts) {
  StoredRegions skips(cache_, {.skip = true});
  ASSERT_TRUE(skips.Put(key_, SomeEntry(), 1).ok());
  EXPECT_EQ(skips.Find(key_, 1).status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(StoredRegions(cache_, {}).Find(key_, 1).ok());
}

// As a later version of the program leaves it.
TEST_F(StoredRegionsTest, BytesThatDoNotDecodeAreAMiss) {
  ASSERT_TRUE(cache_.PutRegion({.depends_on = key_.depends_on, .entry = "later"}).ok());
  StoredRegions regions(cache_, {});
  EXPECT_EQ(regions.Find(key_, 1).status().code(), StatusCode::kNotFound);
  ASSERT_TRUE(regions.Put(key_, SomeEntry(), 1).ok());
  const auto listed = *store_.cache->ListRegions({});
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].record.copies, 1);  // Found and put, but one job.
  EXPECT_EQ(listed[0].record.models, 1);
  EXPECT_EQ(*regions.Find(key_, 1), SomeEntry());
}

}  // namespace
}  // namespace ag
