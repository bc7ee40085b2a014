#include "search/region_store.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ag {
namespace {

RegionEntry SomeEntry() {
  return {.operators = 14,
          .estimate_ns = 1500.5,
          .results = {{.steps = {{"split", {{1, 2}, {3, 4}}, 1, true, -20}, {"join", {{5, 6}}}},
                       .estimate_ns = 900},
                      {.steps = {{"join", {{7, 8}}, 0, true, 100}}, .estimate_ns = 1400.5}}};
}

TEST(RegionStore, EntriesComeBackWhole) {
  for (const RegionEntry& entry : {SomeEntry(), RegionEntry{.operators = 3, .estimate_ns = 7}}) {
    const StatusOr<RegionEntry> read = DecodeRegionEntry(EncodeRegionEntry(entry));
    ASSERT_TRUE(read.ok()) << Message(read.status());
    EXPECT_EQ(*read, entry);
  }
}

TEST(RegionStore, BytesThatAreCutOrChangedAreRefused) {
  const std::string bytes = EncodeRegionEntry(SomeEntry());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(DecodeRegionEntry(bytes.substr(0, size)).status().code(), StatusCode::kDataLoss)
        << size;
  }
  EXPECT_EQ(DecodeRegionEntry(bytes + '\0').status().code(), StatusCode::kDataLoss);
  for (size_t i = 0; i < bytes.size(); ++i) {  // A wrong count must not take memory.
    std::string wrong = bytes;
    wrong[i] = static_cast<char>(wrong[i] ^ 0xff);
    const StatusOr<RegionEntry> read = DecodeRegionEntry(wrong);
    EXPECT_TRUE(read.ok() || read.status().code() == StatusCode::kDataLoss) << i;
  }
  std::string other_version = bytes;
  other_version[0] = 9;
  EXPECT_EQ(Message(DecodeRegionEntry(other_version).status()), "region: version 9, expected 1");
}

TEST(RegionStore, EstimatesThatAreNoTimesAndLongListsAreRefused) {
  const auto refused = [](const RegionEntry& entry) {
    return Message(DecodeRegionEntry(EncodeRegionEntry(entry)).status()) ==
           "region: it has too much, or an estimate that is no time";
  };
  RegionEntry entry = SomeEntry();
  for (const double bad : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    entry.estimate_ns = bad;
    EXPECT_TRUE(refused(entry)) << bad;
    entry = SomeEntry();
    entry.results[1].estimate_ns = bad;
    EXPECT_TRUE(refused(entry)) << bad;
    entry = SomeEntry();
  }
  entry.results[0].steps[1].gain_ns = -std::numeric_limits<double>::infinity();
  EXPECT_TRUE(refused(entry));
  entry = SomeEntry();
  entry.results.resize(kRegionResultsMax + 1);
  EXPECT_TRUE(refused(entry));
  entry = SomeEntry();
  entry.results[0].steps.resize(kRegionStepsMax + 1);
  EXPECT_TRUE(refused(entry));
}

TEST(RegionStore, AReplayFindsWhatTheSearchFoundAndNoMore) {
  std::vector<RegionUse> uses;
  for (const RegionOrigin origin : {RegionOrigin::kNotReached, RegionOrigin::kCut,
                                    RegionOrigin::kSearched, RegionOrigin::kKnown}) {
    RegionUse& use = uses.emplace_back();
    use.key = {"cpu", fmt::format("form={}", uses.size())};
    use.origin = origin;
    use.entry = SomeEntry();
  }
  MemoryRegions regions{uses};
  ASSERT_EQ(regions.entries().size(), 1u);
  EXPECT_EQ(*regions.Find({"cpu", "form=4"}, 1), SomeEntry());
  EXPECT_EQ(regions.Find({"cpu", "form=3"}, 1).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace ag
