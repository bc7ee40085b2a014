#include "search/backtracking.h"

#include <gmock/gmock.h>

#include "search/testing/strategy_test.h"
#include "search/testing/testing.h"

namespace ag {
namespace {

using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;
using testing::UnorderedElementsAre;

// Two independent places where the rule applies.
constexpr std::string_view kTwoPlaces = R"(
input x f32[64,64]
a = const f32[64,64] seed 1
b = const f32[64,64] seed 2
c = const f32[64,64] seed 3
output "p" = matmul(matmul(x, a), b)
output "q" = matmul(matmul(x, b), c)
)";

class BacktrackingTest : public StrategyTest {
 protected:
  std::vector<RankedGraph> Run(std::string_view graph, std::string_view rules,
                               const SearchOptions& options = {}) {
    return RunStrategy<Backtracking>(graph, rules, options);
  }
};

TEST_F(BacktrackingTest, CommutingRewritesAreOneGraph) {
  const auto best = Run(kTwoPlaces, kReassociate);
  ASSERT_THAT(best, SizeIs(3));  // The one place, the other, both.
  EXPECT_EQ(counts_.graphs, 3);
  // Not the other place: it is above beta x the estimate of both.
  EXPECT_EQ(counts_.expansions, 3);
  EXPECT_EQ(stop_, StopReason::kNone);
  EXPECT_EQ(trail_.Path(best[0].step)[0].count, 2);
  EXPECT_LT(best[0].estimate_ns, best[1].estimate_ns);
  EXPECT_LE(best[1].estimate_ns, best[2].estimate_ns);
  EXPECT_NEAR(trail_.Path(best[0].step)[0].gain_ns, root_ns_ - best[0].estimate_ns, 1e-6);
}

// Returns chains that share nothing, each with one operator for the rules of the test.
std::string Chains(int count, std::string_view op) {
  std::string graph;
  for (int i = 0; i < count; ++i) {
    graph += fmt::format(
        "input x{0} f32[64,{1}]\noutput \"y{0}\" = exp(exp(exp(exp({2}(exp(x{0}))))))\n", i, 64 + i,
        op);
  }
  return graph;
}

// A device on which each operator has its own price: neg is cheap, sigmoid is expensive.
double NsByOperator(const GroupProblem& problem) {
  double ns = 0;
  for (const Node& node : problem.graph.nodes()) {
    if (Has(node.op, kLeaf)) continue;
    ns += node.op == OpKind::kNeg ? 2'000 : node.op == OpKind::kSigmoid ? 14'000 : 10'000;
  }
  return ns;
}

TEST_F(BacktrackingTest, GainsFarFromEachOtherAreTakenInOneOrder) {
  measurer_.group_ns = NsByOperator;
  constexpr int kChains = 6;
  const auto best = Run(Chains(kChains, "tanh"), "to-neg [exact]: tanh(x) => neg(x)\n");
  EXPECT_EQ(trail_.Path(best[0].step)[0].count, kChains);
  EXPECT_EQ(counts_.graphs, kChains + (kChains - 1));  // Not 2^6 - 1.
  EXPECT_EQ(stop_, StopReason::kNone);
}

TEST_F(BacktrackingTest, DetoursFarFromEachOtherAreNotCombined) {
  measurer_.group_ns = NsByOperator;
  constexpr int kChains = 6;
  Run(Chains(kChains, "tanh"), "to-sigmoid [exact]: tanh(x) => sigmoid(x)\n");
  EXPECT_EQ(counts_.graphs, kChains);
  EXPECT_EQ(stop_, StopReason::kNone);
}

// The first step costs more, the second saves more than that; a gain at the same place prevents
// both.
TEST_F(BacktrackingTest, ADetourThatPaysIsFoundBesideASmallerGain) {
  measurer_.group_ns = NsByOperator;
  constexpr std::string_view kRules =
      "to-sigmoid [exact]: exp(tanh(x)) => exp(sigmoid(x))\n"
      "to-neg [exact]: exp(sigmoid(x)) => neg(x)\n"
      "less [exact]: exp(tanh(x)) => exp(x)\n";
  const auto best = Run(Chains(3, "tanh"), kRules, {.beta = 1.2});
  std::map<std::string, int> path;
  for (const AppliedRewrite& step : trail_.Path(best[0].step)) path[step.rule] = step.count;
  EXPECT_THAT(path, UnorderedElementsAre(Pair("to-sigmoid", 3), Pair("to-neg", 3)));
  EXPECT_EQ(stop_, StopReason::kNone);
}

// Both operands of a sum must be rewritten before the sum can be.
TEST_F(BacktrackingTest, ADetourGoesOnBesideItself) {
  constexpr std::string_view kSum =
      "input x f32[64,64]\ninput z f32[64,64]\noutput \"y\" = add(tanh(x), tanh(z))\n";
  constexpr std::string_view kRules =
      "to-sigmoid [exact]: tanh(x) => sigmoid(x)\n"
      "sum [exact]: add(sigmoid(x), sigmoid(z)) => add(x, z)\n";
  measurer_.group_ns = NsByOperator;
  const auto best = Run(kSum, kRules, {.beta = 1.3});
  ASSERT_THAT(best, testing::Not(IsEmpty()));
  EXPECT_EQ(trail_.Path(best[0].step).size(), 2u);
}

TEST_F(BacktrackingTest, ADetourEndsAfterSoManySteps) {
  measurer_.group_ns = NsByOperator;
  constexpr std::string_view kRules =
      "a [exact]: tanh(x) => abs(x)\n"
      "b [exact]: abs(x) => sqrt(x)\n"
      "c [exact]: sqrt(x) => relu(x)\n"
      "d [exact]: relu(x) => neg(x)\n";
  EXPECT_LT(Run(Chains(1, "tanh"), kRules, {.limits = {.detour_max = 3}})[0].estimate_ns, root_ns_);
  for (const RankedGraph& graph : Run(Chains(1, "tanh"), kRules, {.limits = {.detour_max = 2}})) {
    EXPECT_GE(graph.estimate_ns, root_ns_);
  }
}

TEST_F(BacktrackingTest, WhatIsSkippedIsNotHandedBackButSearchedThrough) {
  const auto all = Run(kTwoPlaces, kReassociate);
  skip_.insert(HashOfStructure(all[0].graph));
  const auto rest = Run(kTwoPlaces, kReassociate);
  ASSERT_THAT(rest, SizeIs(2));
  EXPECT_EQ(rest[0].graph.digest(), all[1].graph.digest());
}

TEST_F(BacktrackingTest, OnlyTheBestFewAreHandedBack) {
  const auto all = Run(kTwoPlaces, kReassociate);
  const auto one = Run(kTwoPlaces, kReassociate, {.limits = {.candidates_max = 1}});
  ASSERT_THAT(one, SizeIs(1));
  EXPECT_EQ(one[0].graph.digest(), all[0].graph.digest());
  EXPECT_THAT(Run(kTwoPlaces, kReassociate, {.limits = {.candidates_max = 0}}), IsEmpty());
}

TEST_F(BacktrackingTest, WhatIsAboveBetaTimesTheBestIsDropped) {
  constexpr std::string_view kRelu = "input x f32[64,64]\noutput \"y\" = relu(x)\n";
  constexpr std::string_view kNegTwice = "neg-twice [exact]: relu(x) => relu(neg(neg(x)))\n";
  EXPECT_THAT(Run(kRelu, kNegTwice), IsEmpty());
  EXPECT_EQ(counts_.graphs, 1);
  EXPECT_EQ(counts_.expansions, 1);
  const auto slack = Run(kRelu, kNegTwice, {.beta = 10, .limits = {.expansions_max = 2}});
  EXPECT_THAT(slack, testing::Not(IsEmpty()));
}

TEST_F(BacktrackingTest, GraphsDoNotGrowWithoutBound) {
  constexpr std::string_view kRelu = "input x f32[64,64]\noutput \"y\" = relu(x)\n";
  constexpr std::string_view kNegTwice = "neg-twice [exact]: relu(x) => relu(neg(neg(x)))\n";
  Run(kRelu, kNegTwice, {.beta = 1e6});
  EXPECT_EQ(stop_, StopReason::kNone);
  EXPECT_LE(counts_.graphs, Backtracking::kGrowthSlack);
}

TEST_F(BacktrackingTest, LimitsStopItAndAreNamed) {
  Run(kTwoPlaces, kReassociate, {.limits = {.expansions_max = 2}});
  EXPECT_EQ(stop_, StopReason::kExpansions);
  EXPECT_EQ(counts_.expansions, 2);
  Run(kTwoPlaces, kReassociate, {.limits = {.expansions_total_max = 1}});
  EXPECT_EQ(stop_, StopReason::kExpansions);
  Run(kTwoPlaces, kReassociate, {.limits = {.graphs_max = 2}});
  EXPECT_EQ(stop_, StopReason::kGraphs);
  EXPECT_EQ(counts_.graphs, 2);
  Run(kTwoPlaces, kReassociate, {.limits = {.graphs_total_max = 1}});
  EXPECT_EQ(stop_, StopReason::kGraphs);
}

std::string ChainOf(int count, std::string_view op) {
  std::string chain = "x";
  for (int i = 0; i < count; ++i) chain = fmt::format("{}({})", op, chain);
  return fmt::format("input x f32[64,64]\noutput \"y\" = {}\n", chain);
}

// 1,000 / 41 nodes x 1 is 24 graphs.
TEST_F(BacktrackingTest, ItEndsAfterManyGraphsWithoutAGain) {
  measurer_.group_ns = NsByOperator;
  const SearchOptions options = {.beta = 1e6, .limits = {.stale_graphs_max = 1}};
  Run(ChainOf(40, "tanh"), "dearer [exact]: tanh(x) => sigmoid(x)\n", options);
  EXPECT_EQ(stop_, StopReason::kStale);
  EXPECT_EQ(counts_.graphs, 40) << "an expansion that has begun ends";
  EXPECT_EQ(counts_.expansions, 1);
  const auto best = Run(ChainOf(40, "tanh"), "cheaper [exact]: tanh(x) => neg(x)\n", options);
  ASSERT_FALSE(best.empty());
  EXPECT_EQ(trail_.Path(best[0].step)[0].count, 40) << "a gain begins the count anew";
  EXPECT_GT(counts_.graphs, 40);
}

TEST_F(BacktrackingTest, GroupsAreMeasuredOnceHoweverManyGraphsHoldThem) {
  Run(kTwoPlaces, kReassociate);
  size_t groups = 0;
  for (const auto& call : measurer_.group_calls) groups += call.size();
  EXPECT_EQ(groups, 1u);  // Every product has the same shapes and one constant operand.
}

TEST_F(BacktrackingTest, AWrongEstimateIsPutRightBeforeItCounts) {
  // The rewritten graph seems equal to the root until its abs is measured.
  constexpr std::string_view kNegated =
      "input x f32[64,64]\nw = const f32[64,64] seed 1\noutput \"y\" = neg(matmul(x, w))\n";
  constexpr std::string_view kAbs = "neg-inside [exact]: neg(matmul(x, w)) => matmul(abs(x), w)\n";
  measurer_.group_ns = [&](const GroupProblem& problem) {
    const bool has_abs = std::ranges::any_of(
        problem.graph.nodes(), [](const Node& node) { return node.op == OpKind::kAbs; });
    return RooflineNs(problem, spec_) * (has_abs ? 1000 : 1);
  };
  EXPECT_THAT(Run(kNegated, kAbs), IsEmpty());
  EXPECT_EQ(counts_.graphs, 1);
  EXPECT_EQ(measurer_.group_calls.size(), 2u);  // The root's groups, then abs.
}

// More graphs than the look-ahead seem good and are bad: none is expanded by its estimate.
TEST_F(BacktrackingTest, WhatStepsUpToTheFrontIsMeasuredToo) {
  std::string graph;
  for (size_t i = 0; i < Backtracking::kLookAhead + 4; ++i) {
    graph += fmt::format("input x{0} f32[64,{1}]\noutput \"y{0}\" = tanh(x{0})\n", i, 64 + i);
  }
  measurer_.group_ns = [&](const GroupProblem& problem) {
    const bool is_bad = std::ranges::any_of(
        problem.graph.nodes(), [](const Node& node) { return node.op == OpKind::kSigmoid; });
    return RooflineNs(problem, spec_) * (is_bad ? 1000 : 1);
  };
  EXPECT_THAT(Run(graph, "to-sigmoid [exact]: tanh(x) => sigmoid(x)\n"), IsEmpty());
  EXPECT_EQ(counts_.expansions, 1);
  EXPECT_EQ(counts_.graphs, static_cast<int>(Backtracking::kLookAhead) + 4);
}

}  // namespace
}  // namespace ag
