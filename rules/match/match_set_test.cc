// Compares the incremental matcher with a plain one along random walks: the same rewrites, in the
// same order, with the same bindings.
#include "rules/match/match_set.h"

#include <gtest/gtest.h>

#include "graph/testing/random_graph.h"
#include "graph/text_form.h"
#include "rules/sets/built_in_rules.h"
#include "rules/testing/match_walk.h"

namespace ag {
namespace {

// Rules of kinds that are rare among the built-in ones: two roots, guards on readers and constants,
// families over outputs, several spreads, classes, scalars.
constexpr std::string_view kExtraRules = R"(
two-roots [exact]: add(x, y), r:mul(x, z) => sub(x, sub(0, y)), r if same_shape(x, y, z)
two-roots-deep [exact]: \
  relu(add(x, y)), r:sub(y, z) => relu(sub(x, sub(0, y))), r if same_shape(x, y, z)
two-roots-swapped [exact]: mul(x, y), add(x, z) => mul(y, x), add(z, x)
single [exact]: relu(y:add(x, z)) => relu(add(z, x)) if single_use(y)
single-leaf [exact]: add(x, y) => add(y, x) if single_use(x)
constant-leaf [exact]: add(x, y) => add(y, x) if const(y)
square [exact]: mul(x, x) => pow(x, 2)
double [exact]: mul(x, 2) => add(x, x)
sums [exact]: each i: add(x, y[i]) => \
  split(add(x, concat(y[i]...; axis=0)); axis=0, sizes=[dim(y[i], 0)...])[i] \
  if k = shape_but(y[i], 0), same_shape(x, y[i])
unaries [exact]: each i: unary.f(x[i]) => \
  split(unary.f(concat(x[i]...; axis=0)); axis=0, sizes=[dim(x[i], 0)...])[i] \
  if k = shape_but(x[i], 0)
)";

TEST(MatchSet, WalksOverRandomGraphsFindWhatAPlainMatchFinds) {
  const StatusOr<RuleSet> extra = RuleSet::Parse(kExtraRules, "extra");
  ASSERT_TRUE(extra.ok()) << ToString(extra.status());
  const StatusOr<RuleSet> rules = RuleSet::Join(BuiltInRules(), *extra);
  ASSERT_TRUE(rules.ok());
  MatchWalkCounts counts;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = RandomGraph(seed, nullptr, {.nodes = 12 + static_cast<int>(seed % 100)});
    const Status walked = WalkMatches(graph, *rules, {.steps = 16, .seed = seed}, &counts);
    ASSERT_TRUE(walked.ok()) << ToString(walked);
  }
  EXPECT_GT(counts.steps, 2000);
  EXPECT_GT(counts.forgotten, 100);
  EXPECT_GT(counts.sites, 2 * counts.steps);
}

// The second root of a match disappears, and nothing near its first root changes.
TEST(MatchSet, ForgetsMatchesWhoseOtherRootIsGone) {
  const StatusOr<RuleSet> rules = RuleSet::Parse(
      "two-roots [exact]: add(x, y), r:mul(x, z) => sub(x, sub(0, y)), r\n"
      "gone [exact]: mul(x, z) => sub(z, z)\n",
      "test");
  const StatusOr<Graph> graph = ParseGraph(
      "input x f32[2]\ninput y f32[2]\noutput a = add(x, y)\noutput b = mul(x, y)\n"
      "output c = tanh(x)\noutput d = tanh(y)\n");
  ASSERT_TRUE(rules.ok() && graph.ok()) << ToString(rules.status()) << ToString(graph.status());
  MatchWalkCounts counts;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Status walked = WalkMatches(*graph, *rules, {.steps = 2, .seed = seed}, &counts);
    ASSERT_TRUE(walked.ok()) << "seed " << seed << ": " << ToString(walked);
  }
  EXPECT_GE(counts.steps, 20) << "a walk took no step";
}

}  // namespace
}  // namespace ag
