#include "client/cli/load.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ag {
namespace {

TEST(Load, PercentilesAreNearestRank) {
  const struct {
    const char* name;
    int runs;  // Times 1, 2, ..., runs, in descending order.
    double p50, p95, p99;
  } kCases[] = {
      {"one", 1, 1, 1, 1},
      {"two", 2, 1, 2, 2},
      {"twenty", 20, 10, 19, 20},
      {"hundred", 100, 50, 95, 99},
      {"two hundred", 200, 100, 190, 198},
  };
  for (const auto& c : kCases) {
    std::vector<double> times;
    for (int i = c.runs; i > 0; --i) times.push_back(i);
    const Percentiles p = PercentilesOf(times);
    EXPECT_EQ(p.runs, c.runs) << c.name;
    EXPECT_EQ(p.p50_ns, c.p50) << c.name;
    EXPECT_EQ(p.p95_ns, c.p95) << c.name;
    EXPECT_EQ(p.p99_ns, c.p99) << c.name;
  }
}

TEST(Load, ThroughputIsAllRunsOverTheTime) {
  const LoadFigures figures = SumUp({{1e6, 3e6}, {2e6, 2e6, 2e6}}, 0.5);
  EXPECT_DOUBLE_EQ(figures.runs_per_second, 10);
  EXPECT_EQ(figures.all.p50_ns, 2e6);
  ASSERT_EQ(figures.each.size(), 2u);
  EXPECT_EQ(figures.each[0].p99_ns, 3e6);
  EXPECT_EQ(figures.each[1].runs, 3);
  EXPECT_EQ(LoadText(figures), "    10.00 runs/s  p50 2.000  p95 3.000  p99 3.000 ms  (5 runs)");
  EXPECT_EQ(LoadJson(figures)["each"][0]["latency"]["p50_ns"], 1e6);
}

}  // namespace
}  // namespace ag
