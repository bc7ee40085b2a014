#include "plan/fusion/pair_problem.h"

#include <gtest/gtest.h>

#include <set>

#include "graph/reference/evaluate.h"
#include "plan/format/plan_validate.h"
#include "plan/fusion/grouping.h"
#include "plan/schedule/planner.h"
#include "plan/testing/testing.h"

namespace ag {
namespace {

constexpr std::string_view kPairNetwork =
    "input x f32[1,8,4,4]\n"
    "w = const f32[16,8,3,3] seed 1\nb = const f32[16] seed 2\n"
    "v = const f32[16,8,1,1] seed 3\n"
    "c = relu(conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1])\n"
    "d = conv(x, v, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1]\n"
    "half = const f32[] {0.5}\n"
    "p, q = split(mul(c, half)) axis=1 sizes=[5,11]\n"
    "output y = softmax(p) axis=1\n"
    "output z = reduce_mean(q) axes=[2,3]\n"
    "output r = tanh(add(c, d))\n";

// Returns every group of the network except views and reorders.
std::vector<GroupProblem> PairProblems() {
  const Graph graph = GraphOf(kPairNetwork);
  RooflineTimes times(SmallSpec());
  std::vector<GroupProblem> problems;
  const std::vector<Group> groups = *FormGroups(graph, SmallSpec(), {}, times);
  for (const Group& group : groups) {
    if (group.pattern == kViewPattern || group.pattern == kReorderPattern) continue;
    problems.push_back(ExtractGroup(graph, group, {}));
    problems.back().cores = 1;
  }
  return problems;
}

TEST(PairProblem, EveryTwoGroupsMakeAPlanThatComputesBoth) {
  const std::vector<GroupProblem> problems = PairProblems();
  ASSERT_GE(problems.size(), 5u);
  const SyntheticWeights weights;
  for (const GroupProblem& a : problems) {
    for (const GroupProblem& b : problems) {
      const PairProblem pair = MakePair({{a, b}, {"k", "l"}});
      const auto run = PlanOfPair(pair);
      ASSERT_EQ(ToString(run.status()), "OK") << Summary(pair);
      EXPECT_EQ(ToString(ValidatePlan(run->graph, run->plan, SmallSpec())), "OK") << Summary(pair);
      ASSERT_EQ(run->plan.streams.size(), 2u);
      EXPECT_EQ(run->plan.groups[0].kernel, pair.kernels[0]);
      EXPECT_EQ(run->plan.groups[1].pattern, pair.groups[1].pattern);
      EXPECT_EQ(run->graph.size(), a.graph.size() + b.graph.size());
      // The first group's outputs equal those of the group alone.
      std::vector<Tensor> inputs;
      for (const NodeId id : run->graph.inputs()) {
        inputs.push_back(RandomTensor(run->graph.type({id, 0}), 5 + inputs.size()));
      }
      const auto both = *Evaluate(run->graph, inputs, weights);
      const GroupProblem& first = pair.groups[0];
      inputs.resize(first.input_layouts.size());
      const auto alone = *Evaluate(first.graph, inputs, weights);
      for (size_t i = 0; i < alone.size(); ++i) EXPECT_EQ(alone[i].bytes(), both[i].bytes());
    }
  }
}

TEST(PairProblem, GroupsBesideEachOtherReadTheirOwnWeights) {
  const GroupProblem dense = PairProblems()[0];
  const auto run = *PlanOfPair({{dense, dense}, {"", ""}});
  std::set<Digest> names;
  int large = 0;
  for (const Node& node : run.graph.nodes()) {
    if (node.op != OpKind::kConstant || !node.constant->inline_bytes.empty()) continue;
    ++large;
    names.insert(node.constant->digest);
  }
  EXPECT_GT(large, 1);
  EXPECT_EQ(static_cast<int>(names.size()), large);
}

TEST(PairProblem, ReadsBackAndHasOneOrder) {
  const std::vector<GroupProblem> problems = PairProblems();
  const PairProblem one = MakePair({{problems[0], problems[1]}, {"k", "l"}});
  const PairProblem other = MakePair({{problems[1], problems[0]}, {"l", "k"}});
  const std::string bytes = EncodePairProblem(one);
  EXPECT_EQ(EncodePairProblem(other), bytes);
  EXPECT_TRUE(IsPairProblem(bytes));
  EXPECT_FALSE(IsPairProblem(EncodeGroupProblem(problems[0])));
  EXPECT_FALSE(IsPairProblem(""));
  const auto again = DecodePairProblem(bytes);
  ASSERT_EQ(ToString(again.status()), "OK");
  EXPECT_EQ(EncodePairProblem(*again), bytes);
  EXPECT_NE(EncodePairProblem(MakePair({{problems[0], problems[1]}, {"k", "m"}})), bytes);
}

TEST(PairProblem, RefusesWhatIsNone) {
  const std::vector<GroupProblem> problems = PairProblems();
  PairProblem pair{{problems[0], problems[1]}, {"k", "l"}};
  pair.groups[1].precision = "fp16";
  EXPECT_EQ(ToString(DecodePairProblem(EncodePairProblem(pair)).status()),
            "DATA_LOSS: pair problem: precisions fp32 and fp16");
  pair.groups[1] = problems[1];
  pair.groups[1].cold_cache = true;
  EXPECT_EQ(ToString(DecodePairProblem(EncodePairProblem(pair)).status()),
            "DATA_LOSS: pair problem: one group is cold");
  pair.groups[1] = problems[1];
  pair.groups[1].input_layouts.push_back(Layout::kPlain);
  EXPECT_EQ(PlanOfPair(pair).status().code(), StatusCode::kInvalidArgument);
  pair.groups[1] = problems[1];
  pair.groups[1].pattern = "reorder";
  EXPECT_EQ(ToString(DecodePairProblem(EncodePairProblem(pair)).status()),
            "DATA_LOSS: pair problem: a reorder is not timed beside another group");
  EXPECT_EQ(ToString(DecodePairProblem(EncodeGroupProblem(problems[0])).status()),
            "DATA_LOSS: pair problem: expected version 1, got 1 (magic 0x50474741)");
  pair.groups[1] = problems[1];
  const std::string bytes = EncodePairProblem(pair);
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_FALSE(DecodePairProblem(bytes.substr(0, cut)).ok()) << cut;
  }
  for (size_t at = 0; at < bytes.size(); at += 3) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x15);
    const auto read = DecodePairProblem(flipped);  // Any bytes give a plan or an error.
    if (read.ok()) static_cast<void>(PlanOfPair(*read).ok());
  }
}

}  // namespace
}  // namespace ag
