// The matcher beyond single rules: families, subsets, shared inner nodes, barriers, cycles.
#include "rules/match/matcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "graph/text_form.h"
#include "rules/match/rewrite.h"
#include "rules/sets/built_in_rules.h"
#include "rules/testing/testing.h"

namespace ag {
namespace {

RuleSet MustParseRules(const std::string& text) {
  StatusOr<RuleSet> rules = RuleSet::Parse(text, "test");
  EXPECT_TRUE(rules.ok()) << ToString(rules.status());
  return rules.ok() ? *rules : RuleSet();
}

// Returns a set with one rule. It is kept, because rewrites point into it.
const RuleSet& Only(const std::string& name) {
  static std::map<std::string, RuleSet> sets;
  const auto [set, added] = sets.try_emplace(name);
  if (added) set->second = MustParseRules(BuiltInRules().Find(name)->text);
  return set->second;
}

// Returns the number of roots of every rewrite.
std::vector<size_t> RootCounts(const std::vector<Rewrite>& rewrites) {
  std::vector<size_t> counts;
  for (const Rewrite& rewrite : rewrites) counts.push_back(rewrite.roots.size());
  return counts;
}

constexpr const char* kThreeSiblings = R"(
input x f32[2,3]
output a = matmul(x, const f32[3,4] seed 1)
output b = matmul(x, const f32[3,5] seed 2)
output c = matmul(x, const f32[3,6] seed 3)
)";

TEST(Matcher, FamiliesGiveTheMaximalMatchAndThenSubsets) {
  const Graph graph = MustParse(kThreeSiblings);
  EXPECT_THAT(RootCounts(FindRewrites(graph, Only("matmul-merge-siblings"), 0)),
              testing::ElementsAre(3));
  EXPECT_THAT(RootCounts(FindRewrites(graph, Only("matmul-merge-siblings"), 2)),
              testing::UnorderedElementsAre(3, 2, 2));
  EXPECT_THAT(RootCounts(FindRewrites(graph, Only("matmul-merge-siblings"), 8)),
              testing::UnorderedElementsAre(3, 2, 2, 2));
}

TEST(Matcher, TheOrderOfRewritesIsTheSameEveryTime) {
  const Graph graph = MustParse(kThreeSiblings);
  const auto a = FindRewrites(graph, BuiltInRules());
  const auto b = FindRewrites(graph, BuiltInRules());
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].rule, b[i].rule);
    EXPECT_EQ(a[i].roots, b[i].roots);
    EXPECT_EQ(Apply(graph, a[i])->digest(), Apply(graph, b[i])->digest());
  }
}

TEST(Matcher, SiblingsThatFeedEachOtherMakeACycleAndAreRefused) {
  const Graph graph = MustParse(R"(
input x f32[2,2]
a = matmul(x, const f32[2,2] seed 1)
output b = matmul(x, a)
)");
  const auto rewrites = FindRewrites(graph, Only("matmul-merge-siblings"));
  ASSERT_EQ(rewrites.size(), 1u);
  const Status status = Apply(graph, rewrites[0]).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << ToString(status);
}

TEST(Matcher, InteriorValuesMayHaveOtherReaders) {
  const Graph graph = MustParse("input x f32[2]\ny = relu(x)\noutput y\noutput z = relu(y)\n");
  const RuleSet rules = MustParseRules("once [exact]: relu(relu(x)) => relu(x)");
  const auto rewrites = FindRewrites(graph, rules);
  ASSERT_EQ(rewrites.size(), 1u);
  const StatusOr<Graph> after = Apply(graph, rewrites[0]);
  ASSERT_TRUE(after.ok());
  EXPECT_EQ(FormatGraph(*after),
            FormatGraph(MustParse("input x f32[2]\ny = relu(x)\noutput y\noutput z = y\n")));
}

TEST(Matcher, SharedVariablesAreTheSameEdge) {
  const RuleSet rules = MustParseRules("square [exact]: mul(x, x) => pow(x, 2)");
  EXPECT_EQ(FindRewrites(MustParse("input x f32[2]\ninput y f32[2]\noutput z = mul(x, y)\n"), rules)
                .size(),
            0u);
  EXPECT_EQ(FindRewrites(MustParse("input x f32[2]\noutput z = mul(x, x)\n"), rules).size(), 1u);
}

TEST(Matcher, OpaqueNodesAndConstantsAloneAreNotMatched) {
  const RuleSet rules = MustParseRules("a [exact]: relu(unary.f(x)) => unary.f(relu(x))");
  const Graph opaque = MustParse(
      "input x f32[2]\ny = opaque(x) onnx_node=\"\" domain=\"d\" -> f32[2]\noutput z = relu(y)\n");
  EXPECT_EQ(FindRewrites(opaque, rules).size(), 0u);
  const Graph constant =
      MustParse("input x f32[2]\nc = relu(tanh(const f32[2] seed 1))\noutput z = add(x, c)\n");
  EXPECT_EQ(FindRewrites(constant, rules).size(), 0u);
}

TEST(Matcher, WaysAtTheSameRootsAreNumbered) {
  const Graph graph = MustParse(
      "input a f32[2]\ninput b f32[2]\ninput c f32[2]\ninput d f32[2]\n"
      "output o = mul(add(a, b), add(c, d))\n");
  const auto rewrites = FindRewrites(graph, Only("mul-distribute"));
  ASSERT_GE(rewrites.size(), 2u);
  for (size_t i = 0; i < rewrites.size(); ++i) {
    EXPECT_EQ(rewrites[i].roots, rewrites[0].roots);
    EXPECT_EQ(rewrites[i].variant, static_cast<int>(i));
  }
}

TEST(Matcher, CleanUpRulesAreNotSearched) {
  const Graph graph = MustParse("input x f32[2]\noutput y = mul(x, sigmoid(x))\n");
  for (const Rewrite& rewrite : FindRewrites(graph, BuiltInRules())) {
    EXPECT_FALSE(rewrite.rule->clean_up) << rewrite.rule->name;
  }
}

}  // namespace
}  // namespace ag
