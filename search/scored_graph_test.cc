#include "search/scored_graph.h"

#include <gtest/gtest.h>

#include "search/testing/test_search.h"

namespace ag {
namespace {

// Two branches of two groups and of one, 1,000 ns each.
double EstimateNs(DeviceSpec spec, int streams) {
  const RuleSet rules;
  const SearchRequest request{.input = TestGraph("input x f32[4]\n"
                                                 "output y = sin(cos(x))\n"
                                                 "output z = tanh(x)\n"),
                              .spec = spec,
                              .options = {.alpha = 0.25, .streams_max = streams}};
  FakeMeasurer measurer{spec};
  measurer.group_ns = [](const GroupProblem&) { return 1000.0; };
  FakeClock clock;
  return TestSearch(request, rules, measurer, clock).MeasureInput();
}

TEST(ScoreGraph, WhereBlocksAreDealtOutItIsTheMakespan) {
  DeviceSpec spec = TestSpec(/*streams_max=*/2);
  spec.block_outputs = 4;  // Each group takes one of four cores.
  EXPECT_DOUBLE_EQ(EstimateNs(spec, 2), 2000);
  EXPECT_DOUBLE_EQ(EstimateNs(spec, 1), 3000);
  spec.block_outputs = 1;  // All four.
  EXPECT_DOUBLE_EQ(EstimateNs(spec, 2), 3000);
}

TEST(ScoreGraph, ElseItIsTheMixedEstimate) {
  EXPECT_DOUBLE_EQ(EstimateNs(TestSpec(/*streams_max=*/2), 2), 3000 + 0.25 * 2000);
}

}  // namespace
}  // namespace ag
