#include "search/scored_graph.h"

#include <gtest/gtest.h>

#include "graph/testing/random_graph.h"
#include "rules/match/child_graphs.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
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

// What a score is made of, as text.
std::string ScoreText(const StatusOr<ScoredGraph>& scored) {
  if (!scored.ok()) return ToString(scored.status());
  std::string text = fmt::format("{} ns", scored->estimate_ns);
  for (const BriefGroup& group : scored->groups.groups) {
    text += fmt::format("; {} {} of {}", static_cast<int>(group.kind), group.pattern,
                        fmt::join(scored->groups.NodesOf(group), ","));
  }
  return text;
}

// Returns the score by times that no other graph was scored with.
std::string ScoreFromScratch(const Graph& graph, const SearchRequest& request) {
  FakeMeasurer measurer{request.spec};
  FakeClock clock;
  TestSearch search(request, BuiltInRules(), measurer, clock);
  return ScoreText(ScoreGraph(graph, search.setting));
}

// Keys of groups, times by key and hashes of nodes are kept from graph to graph; none of them may
// show.
TEST(ScoreGraph, AlongAWalkItIsTheScoreFromScratch) {
  DeviceSpec spec = TestSpec(/*streams_max=*/3);
  spec.block_outputs = 4;
  spec.patterns[0].steps.push_back({.ops = {OpKind::kAdd}, .optional = true});
  const RuleIndex clean_up(BuiltInRules(), RuleIndex::Kind::kCleanUp);
  int compared = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Graph graph = *CleanUp(ag::RandomGraph(seed, nullptr, {.nodes = 25}), BuiltInRules());
    const SearchRequest request{.input = graph, .spec = spec};
    FakeMeasurer measurer{spec};
    measurer.group_ns = [&spec](const GroupProblem& group) { return RooflineNs(group, spec); };
    FakeClock clock;
    TestSearch search(request, BuiltInRules(), measurer, clock);
    Random random(seed);
    for (int step = 0; step < 6; ++step) {
      const std::vector<Rewrite> rewrites = FindRewrites(graph, BuiltInRules());
      if (rewrites.empty()) break;
      ChildGraphs children(graph, clean_up, {.parent_is_clean = true});
      if (!children.Try(rewrites[random.Below(rewrites.size())]).ok()) continue;
      StatusOr<ChildGraph> child = children.Make();
      ASSERT_TRUE(child.ok());
      graph = std::move(child->graph);
      EXPECT_TRUE(HashOfStructure(graph) == HashOfStructure(*GraphBuilder(graph).Build()));
      const StatusOr<ScoredGraph> scored = ScoreGraph(graph, search.setting);
      EXPECT_EQ(ScoreText(scored), ScoreFromScratch(graph, request));
      if (!scored.ok()) continue;
      ++compared;
      const BriefSetting brief{graph, spec, request.policy};
      for (const GroupProblem& problem : UnmeasuredOf(brief, scored->groups)) {
        if (random.Below(2) == 0) search.times.Want(problem);
      }
      search.times.MeasureWanted();
    }
  }
  EXPECT_GT(compared, 100);
}

}  // namespace
}  // namespace ag
