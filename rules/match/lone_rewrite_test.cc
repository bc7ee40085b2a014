#include "rules/match/lone_rewrite.h"

#include <gtest/gtest.h>

#include "graph/text_form.h"
#include "rules/sets/built_in_rules.h"

namespace ag {
namespace {

Rewrite PlaceOf(const Graph& graph, const RuleSet& rules, std::string_view rule) {
  for (const Rewrite& rewrite : FindRewrites(graph, rules)) {
    if (rewrite.rule->name == rule) return rewrite;
  }
  ADD_FAILURE() << rule << " has no place";
  return {};
}

TEST(LoneRewrite, HasTheMatchedNodesAndWhatTheyRead) {
  const Graph graph = *ParseGraph(
      "input x f32[4,16]\n"
      "input z f32[16,16]\n"
      "a = tanh(x)\n"
      "p = matmul(a, const f32[16,16] seed 1)\n"
      "q = matmul(a, add(const f32[16,16] seed 2, const f32[16,16] seed 3))\n"
      "output y = add(relu(p), exp(matmul(q, z)))\n");
  const LoneRewrite lone = *CutOut(graph, PlaceOf(graph, BuiltInRules(), "matmul-merge-siblings"));
  EXPECT_EQ(
      FormatGraph(lone.before),
      FormatGraph(*ParseGraph(
          "input x0 f32[4,16]\n"
          "output y0 = matmul(x0, const f32[16,16] seed 1)\n"
          "output y1 = matmul(x0, add(const f32[16,16] seed 2, const f32[16,16] seed 3))\n")));
  EXPECT_EQ(lone.after.inputs().size(), 1u);
  EXPECT_EQ(lone.after.outputs().size(), 2u);
  EXPECT_NE(lone.after.digest(), lone.before.digest());
}

// A root that another root reads is an output and read inside.
TEST(LoneRewrite, RootsMayReadEachOther) {
  const RuleSet rules =
      *RuleSet::Parse("two [exact]: relu(x), tanh(relu(x)) => relu(x), abs(relu(x))\n", "t.rules");
  const Graph graph = *ParseGraph("input x f32[4]\noutput y = exp(tanh(relu(neg(x))))\n");
  const std::vector<Rewrite> places = FindRewrites(graph, rules);
  ASSERT_FALSE(places.empty());
  const StatusOr<LoneRewrite> lone = CutOut(graph, places[0]);
  ASSERT_TRUE(lone.ok()) << lone.status();
  EXPECT_EQ(lone->before.size(), 3);
}

TEST(LoneRewrite, AGuardThatLooksAroundIsSaid) {
  const RuleSet rules = *RuleSet::Parse(
      "shared [exact]: relu(y:neg(x)) => abs(neg(x)) if single_use(y) == 0\n", "t.rules");
  const Graph graph =
      *ParseGraph("input x f32[4]\nn = neg(x)\noutput y = relu(n)\noutput z = tanh(n)\n");
  EXPECT_EQ(ToString(CutOut(graph, PlaceOf(graph, rules, "shared")).status()),
            "FAILED_PRECONDITION: shared: its nodes do not match by themselves");
}

TEST(LoneRewrite, PlacesOfACleanUpRuleAreFound) {
  const RuleSet rules =
      *RuleSet::Parse("half [rounding, clean-up]: mul(x, {0.5}) => neg(x)\n", "t.rules");
  const Graph graph = *ParseGraph(
      "input x f32[4]\noutput y = mul(exp(mul(x, const f32[] {0.5})), const f32[] {0.5})\noutput z "
      "= mul(x, const f32[] {0.25})\n");
  EXPECT_TRUE(FindRewrites(graph, rules).empty());
  const std::vector<Rewrite> places = PlacesOf(graph, rules.rules()[0], 8);
  ASSERT_EQ(places.size(), 2u);
  EXPECT_EQ(PlacesOf(graph, rules.rules()[0], 1).size(), 1u);
  for (const Rewrite& place : places) {
    const LoneRewrite lone = *CutOut(graph, place);
    EXPECT_EQ(FormatGraph(lone.after),
              FormatGraph(*ParseGraph("input x0 f32[4]\noutput y0 = neg(x0)\n")));
  }
}

}  // namespace
}  // namespace ag
