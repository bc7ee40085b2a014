#include "worker/blob_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

namespace ag {
namespace {

class BlobCacheTest : public ::testing::Test {
 protected:
  BlobCache Open(int64_t bytes_max) { return *BlobCache::Open(root(), bytes_max); }
  std::string root() const { return folder_.path() + "/cache"; }

  // Stores a blob of this many bytes, last used at `second`.
  static Digest Put(BlobCache& cache, char fill, size_t bytes, int64_t second) {
    const Digest digest = *cache.blobs().Put(std::string(bytes, fill));
    const timespec at[2] = {{second, 0}, {second, 0}};
    AG_CHECK(::utimensat(AT_FDCWD, cache.blobs().PathOf(digest).c_str(), at, 0) == 0);
    return digest;
  }

  const TempDir folder_ = *TempDir::Make("blob-cache-test");
};

TEST_F(BlobCacheTest, WhatWasUsedLongestAgoGoesFirst) {
  BlobCache cache = Open(100);
  const Digest newest = Put(cache, 'a', 40, 300);
  const Digest oldest = Put(cache, 'b', 30, 100);
  const Digest middle = Put(cache, 'c', 30, 200);
  const struct {
    const char* name;
    int64_t bytes;
    bool newest, middle, oldest;
  } kSteps[] = {
      {"nothing is asked", 0, true, true, true}, {"a little", 1, true, true, false},
      {"fits the hole", 30, true, true, false},  {"one more byte", 31, true, false, false},
      {"all", 100, false, false, false},
  };
  for (const auto& step : kSteps) {
    EXPECT_EQ(ToString(cache.MakeRoom(step.bytes, {})), "OK") << step.name;
    EXPECT_EQ(cache.blobs().Has(newest), step.newest) << step.name;
    EXPECT_EQ(cache.blobs().Has(middle), step.middle) << step.name;
    EXPECT_EQ(cache.blobs().Has(oldest), step.oldest) << step.name;
  }
}

TEST_F(BlobCacheTest, AUseSavesABlob) {
  BlobCache cache = Open(100);
  const Digest used = Put(cache, 'a', 50, 100);
  const Digest other = Put(cache, 'b', 50, 200);
  EXPECT_TRUE(cache.Use(used));
  EXPECT_EQ(ToString(cache.MakeRoom(50, {})), "OK");
  EXPECT_TRUE(cache.Use(used));
  EXPECT_FALSE(cache.Use(other));
}

TEST_F(BlobCacheTest, KeepsWhatTheWorkItemNeeds) {
  BlobCache cache = Open(100);
  const Digest kept = Put(cache, 'a', 60, 100);
  const Digest other = Put(cache, 'b', 40, 200);
  EXPECT_EQ(ToString(cache.MakeRoom(41, {kept})),
            "RESOURCE_EXHAUSTED: blob cache " + root() +
                ": 41 bytes do not fit beside 60 bytes in use; the limit is 100");
  EXPECT_TRUE(cache.blobs().Has(other)) << "nothing is removed in vain";
  EXPECT_EQ(ToString(cache.MakeRoom(40, {kept})), "OK");
  EXPECT_TRUE(cache.blobs().Has(kept));
  EXPECT_FALSE(cache.blobs().Has(other));
}

TEST_F(BlobCacheTest, ASmallerLimitEmptiesAnOldFolder) {
  BlobCache before = Open(100);
  const Digest old = Put(before, 'a', 90, 100);
  BlobCache cache = Open(50);
  EXPECT_EQ(ToString(cache.MakeRoom(0, {})), "OK");
  EXPECT_FALSE(cache.blobs().Has(old));
}

}  // namespace
}  // namespace ag
