#include "search/repeat_rewrites.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "graph/text_form.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "search/rewrite_walk.h"
#include "search/size_blind.h"
#include "search/testing/fake_measurer.h"

namespace ag {
namespace {

Graph CleanAt(std::string_view text, int64_t batch) {
  const std::string there =
      absl::StrReplaceAll(absl::string_view(text.data(), text.size()),
                          {{"{b}", std::to_string(batch)}, {"{4b}", std::to_string(4 * batch)}});
  return *CleanUp(TestGraph(there), BuiltInRules());
}

// The first rewrite of the rule on the graph, as a search of one round takes it.
std::vector<RewriteStep> OneStep(const Graph& graph, std::string_view rule) {
  for (const Rewrite& rewrite : FindRewrites(graph, BuiltInRules())) {
    if (rewrite.rule->name == rule) return {{rewrite, true}};
  }
  ADD_FAILURE() << rule << " has no place in\n" << FormatGraph(graph);
  return {};
}

// Two products that read one tensor, behind a transpose that is a reshape for a batch of one.
constexpr std::string_view kSiblings = R"(
input x f32[{b},16,8]
t = transpose(x) perm=[1,0,2]
p = relu(matmul(t, const f32[8,4] seed 1))
q = tanh(matmul(t, const f32[8,4] seed 2))
output y = concat(p, q) axis=2
)";

TEST(RepeatRewrites, FindsThePlaceWhereABatchOfOneHasAReshapeForATranspose) {
  const Graph one = CleanAt(kSiblings, 1);
  ASSERT_EQ(FormatGraph(one).find("transpose"), std::string::npos);
  const auto repeated =
      RepeatRewrites(one, OneStep(one, "matmul-merge-siblings"),
                     {CleanAt(kSiblings, 3), CleanAt(kSiblings, 5)}, BuiltInRules());
  ASSERT_TRUE(repeated.ok()) << Message(repeated.status());
  EXPECT_EQ(repeated->applied, 1);
  EXPECT_TRUE(repeated->left_out.empty());
  ASSERT_EQ(repeated->graphs.size(), 2u);
  for (const Graph& graph : repeated->graphs) {
    int products = 0;
    for (NodeId id = 0; id < graph.size(); ++id) {
      products += graph.node(id).op == OpKind::kMatMul && !graph.is_constant(id) ? 1 : 0;
    }
    EXPECT_EQ(products, 1) << FormatGraph(graph);
  }
  EXPECT_EQ(repeated->graphs[0].size(), repeated->graphs[1].size());
  // The steps that were taken there can be taken again.
  RewriteWalk walk(CleanAt(kSiblings, 3), BuiltInRules());
  ASSERT_EQ(repeated->steps.size(), 2u);
  ASSERT_EQ(ToString(walk.Take(repeated->steps[0])), "OK");
  EXPECT_EQ(walk.graph().size(), repeated->graphs[0].size());
}

TEST(RepeatRewrites, LeavesOutWhatHasNoPlaceAtOtherSizes) {
  const Graph one = CleanAt(kSiblings, 1);
  // At other sizes the second product is not there.
  const Graph other = CleanAt(R"(
input x f32[{b},16,8]
t = transpose(x) perm=[1,0,2]
p = relu(matmul(t, const f32[8,4] seed 1))
output y = concat(p, p) axis=2
)",
                              3);
  const auto repeated =
      RepeatRewrites(one, OneStep(one, "matmul-merge-siblings"), {other}, BuiltInRules());
  ASSERT_TRUE(repeated.ok()) << Message(repeated.status());
  EXPECT_EQ(repeated->applied, 0);
  EXPECT_TRUE(repeated->steps[0].empty());
  ASSERT_EQ(repeated->left_out.size(), 1u);
  EXPECT_EQ(repeated->left_out[0].rule, "matmul-merge-siblings");
}

TEST(RepeatRewrites, TakesTheOneOfTwoEqualPlacesThatHasTheSameWeights) {
  constexpr std::string_view kTwo = R"(
input x f32[{b},16,8]
input z f32[{b},16,8]
p = relu(matmul(x, const f32[8,4] seed 1))
q = tanh(matmul(x, const f32[8,4] seed 2))
r = relu(matmul(z, const f32[8,4] seed 3))
s = tanh(matmul(z, const f32[8,4] seed 4))
output y = concat(p, q, r, s) axis=2
)";
  const Graph one = CleanAt(kTwo, 1);
  for (const Rewrite& rewrite : FindRewrites(one, BuiltInRules())) {
    if (rewrite.rule->name != "matmul-merge-siblings") continue;
    const std::vector<RewriteStep> steps = {{rewrite, true}};
    const auto there = RepeatRewrites(one, steps, {CleanAt(kTwo, 3)}, BuiltInRules());
    const auto here = RepeatRewrites(one, steps, {one}, BuiltInRules());
    ASSERT_TRUE(there.ok() && here.ok());
    EXPECT_EQ(there->applied, 1);
    const auto names = [](const Graph& graph) { return SizeBlind({&graph, 1}).Names(graph); };
    EXPECT_EQ(names(there->graphs[0]), names(here->graphs[0]));
  }
}

}  // namespace
}  // namespace ag
