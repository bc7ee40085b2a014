#include "search/search_log.h"

#include <gtest/gtest.h>

namespace ag {
namespace {

// The history keeps its beginning and its end, and is never above its bound.
TEST(SearchLog, AFullHistoryIsThinnedOut) {
  SearchLog log;
  const int points = 10 * static_cast<int>(SearchLog::kHistoryMax) + 1;
  for (int i = 0; i < points; ++i) {
    log.Add(SearchPoint{.seconds = static_cast<double>(i), .graphs = i});
    ASSERT_LE(log.history.size(), SearchLog::kHistoryMax);
    ASSERT_EQ(log.history.back().graphs, i);
  }
  EXPECT_GT(log.history.size(), SearchLog::kHistoryMax / 2);
  EXPECT_EQ(log.history.front().graphs, 0);
  for (size_t i = 1; i < log.history.size(); ++i) {
    EXPECT_LT(log.history[i - 1].graphs, log.history[i].graphs);
  }
}

TEST(SearchLog, TheFinalComparisonIsAlwaysKept) {
  SearchLog log;
  for (size_t i = 0; i < SearchLog::kMeasuredMax + 5; ++i) log.Add(MeasuredCandidate());
  EXPECT_EQ(log.measured.size(), SearchLog::kMeasuredMax);
  log.Add(MeasuredCandidate{.is_final = true});
  EXPECT_EQ(log.measured.size(), SearchLog::kMeasuredMax + 1);
  EXPECT_TRUE(log.measured.back().is_final);
}

}  // namespace
}  // namespace ag
