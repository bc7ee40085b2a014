#include "search/beam_search.h"

#include <gmock/gmock.h>

#include "search/testing/strategy_test.h"
#include "search/testing/testing.h"

namespace ag {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr std::string_view kDearChain =
    "input x f32[64,64]\noutput \"y\" = exp(exp(exp(exp(tanh(exp(x))))))\n";
// The way to neg leads over a sigmoid, ten times as dear as the whole chain.
constexpr std::string_view kDearDetour =
    "to-sigmoid [exact]: tanh(x) => sigmoid(x)\n"
    "to-neg [exact]: sigmoid(x) => neg(x)\n";

double NsOfDearDetour(const GroupProblem& problem) {
  double ns = 0;
  for (const Node& node : problem.graph.nodes()) {
    if (Has(node.op, kLeaf)) continue;
    ns += node.op == OpKind::kNeg ? 2'000 : node.op == OpKind::kSigmoid ? 600'000 : 10'000;
  }
  return ns;
}

class BeamSearchTest : public StrategyTest {
 protected:
  std::vector<RankedGraph> Run(std::string_view graph, std::string_view rules,
                               int graphs_max = 1000, const SearchOptions& options = {}) {
    return RunOn(graph, rules, options, [&](const SearchSetting& setting, const RankedGraph& root) {
      BeamSearch beam(setting, trail_);
      auto best = beam.Run({root}, skip_, graphs_max);
      stop_ = beam.stop();
      return best;
    });
  }
};

TEST_F(BeamSearchTest, ADetourMayCostAnything) {
  measurer_.group_ns = NsOfDearDetour;
  const auto best = Run(kDearChain, kDearDetour);
  ASSERT_THAT(best, SizeIs(1));                   // Not the dear one: it is above beta x the best.
  EXPECT_EQ(best[0].estimate_ns, 1.25 * 52'000);  // The mixed estimate of a chain.
  const std::vector<RewriteStep> steps = trail_.Steps(best[0].step);
  ASSERT_THAT(steps, SizeIs(2));
  EXPECT_EQ(steps[0].rewrite.rule->name, "to-sigmoid");
  EXPECT_TRUE(steps[0].begins_round);
  EXPECT_EQ(steps[0].gain_ns, -1.25 * 590'000);
  EXPECT_FALSE(steps[1].begins_round);
  EXPECT_EQ(steps[1].gain_ns, 1.25 * 598'000);
  EXPECT_THAT(RunStrategy<Backtracking>(kDearChain, kDearDetour, {}), IsEmpty());
}

TEST_F(BeamSearchTest, ItEndsAfterManyGraphsWithoutAGain) {
  measurer_.group_ns = NsOfDearDetour;
  constexpr std::string_view kDearer = "dearer [exact]: tanh(x) => sigmoid(x)\n";
  std::string chain = "x";
  for (int i = 0; i < 40; ++i) chain = fmt::format("tanh({})", chain);
  const std::string graph = fmt::format("input x f32[64,64]\noutput \"y\" = {}\n", chain);
  Run(graph, kDearer, 1000, {.limits = {.stale_graphs_max = 1}});  // 24 graphs.
  EXPECT_EQ(stop_, StopReason::kStale);
  EXPECT_EQ(counts_.graphs, 40) << "an expansion that has begun ends";
  Run(graph, kDearer, 1000, {.limits = {.stale_graphs_max = 0}});
  EXPECT_EQ(stop_, StopReason::kGraphs);
}

TEST_F(BeamSearchTest, ASmallSpaceIsSearchedToItsEnd) {
  std::string rules;
  constexpr std::string_view kOps[] = {"tanh", "abs", "sqrt", "relu", "sin", "cos"};
  for (size_t i = 0; i + 1 < std::size(kOps); ++i) {
    rules += fmt::format("r{0} [exact]: {1}(x) => {2}(x)\n", i, kOps[i], kOps[i + 1]);
  }
  // Two places with six operators each, but no more than eight rewrites: two of ten are cut off at
  // each end, 36 - 1 (the root) - 3 (nine and ten rewrites).
  Run("input x f32[64,64]\noutput \"y\" = tanh(exp(tanh(exp(x))))\n", rules);
  EXPECT_EQ(counts_.graphs, 32);
  EXPECT_EQ(stop_, StopReason::kNone);
}

TEST_F(BeamSearchTest, NoMoreGraphsAreScoredThanItMay) {
  measurer_.group_ns = NsOfDearDetour;
  EXPECT_THAT(Run(kDearChain, kDearDetour, 1), IsEmpty());
  EXPECT_EQ(counts_.graphs, 1);
  EXPECT_EQ(stop_, StopReason::kGraphs);
  EXPECT_THAT(Run(kDearChain, kDearDetour, 1000, {.limits = {.graphs_total_max = 1}}), IsEmpty());
  EXPECT_EQ(counts_.graphs, 1);
  EXPECT_THAT(Run(kDearChain, kDearDetour, 2), SizeIs(1));
  EXPECT_EQ(counts_.graphs, 2);
}

TEST_F(BeamSearchTest, WhatIsSkippedIsNotHandedBackButSearchedThrough) {
  skip_.insert(HashOfStructure(
      TestGraph("input x f32[64,64]\noutput \"y\" = exp(exp(exp(exp(sigmoid(exp(x))))))\n")));
  measurer_.group_ns = NsOfDearDetour;
  EXPECT_THAT(Run(kDearChain, kDearDetour), SizeIs(1));
  skip_.insert(HashOfStructure(
      TestGraph("input x f32[64,64]\noutput \"y\" = exp(exp(exp(exp(neg(exp(x))))))\n")));
  EXPECT_THAT(Run(kDearChain, kDearDetour), IsEmpty());
}

TEST_F(BeamSearchTest, ItEndsWithTheTimeAndSaysSo) {
  const SearchOptions options{.limits = {.time_max = Nanos{0}}};
  EXPECT_THAT(Run(kDearChain, kDearDetour, 1000, options), IsEmpty());
  EXPECT_EQ(counts_.graphs, 0);
  EXPECT_EQ(stop_, StopReason::kTime);
}

// The group of the sigmoid cannot be measured, so what needs it has no estimate.
TEST_F(BeamSearchTest, AGraphWithAFailedGroupIsLeftOut) {
  measurer_.group_ns = NsOfDearDetour;
  measurer_.group_failure = [](const GroupProblem& problem) -> Status {
    for (const Node& node : problem.graph.nodes()) {
      if (node.op == OpKind::kSigmoid) return Err(StatusCode::kInternal, "no kernel");
    }
    return OkStatus();
  };
  EXPECT_THAT(Run(kDearChain, kDearDetour), IsEmpty());
  EXPECT_EQ(counts_.graphs, 1);
}

}  // namespace
}  // namespace ag
