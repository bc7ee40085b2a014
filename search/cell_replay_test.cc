#include "search/cell_replay.h"

#include <gmock/gmock.h>

#include "rules/match/rule_clean_up.h"
#include "search/region_steps.h"
#include "search/rewrite_walk.h"
#include "search/testing/fake_measurer.h"
#include "search/testing/testing.h"

namespace ag {
namespace {

using testing::SizeIs;

// Three cells of one form: a product of two matrices beside a branch, and their sum.
constexpr std::string_view kThree = R"(
input x f32[64,64]
a = add(matmul(matmul(x, const f32[64,64] seed 1), const f32[64,64] seed 2), tanh(x))
b = add(matmul(matmul(a, const f32[64,64] seed 3), const f32[64,64] seed 4), tanh(a))
output "y" = add(matmul(matmul(b, const f32[64,64] seed 5), const f32[64,64] seed 6), tanh(b))
)";

int Products(const Graph& graph) {
  int products = 0;
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (graph.node(id).op == OpKind::kMatMul && !graph.is_constant(id)) ++products;
  }
  return products;
}

class CellReplayTest : public testing::Test {
 protected:
  CellReplayTest()
      : rules_(TestRules(kReassociate)),
        one_rule_(rules_),
        graph_(*CleanUp(TestGraph(kThree), rules_)),
        cells_(CutIntoCells(graph_)) {}

  // The first rewrite of the first cell by itself.
  std::vector<RegionStep> Found() {
    const Graph clean = *CleanUp(cells_[0].graph, rules_);
    RewriteTrail trail;
    const int step = trail.Add(RewriteTrail::kInput, {FindRewrites(clean, rules_).at(0), true});
    return *StepTeller(clean, trail, one_rule_).StepsTo(step);
  }

  const RuleSet rules_;
  OneRule one_rule_;
  const Graph graph_;
  const std::vector<Cell> cells_;
};

TEST_F(CellReplayTest, WhatWasFoundInOneCellIsTakenInAll) {
  ASSERT_THAT(cells_, SizeIs(3));
  ASSERT_EQ(cells_[0].form, cells_[2].form);
  Graph whole = graph_;
  std::vector<RewriteStep> steps;
  for (int i = 2; i >= 0; --i) {  // The last first.
    const StatusOr<CellReplay> replay = ReplayInCell(whole, cells_[i], Found(), one_rule_);
    ASSERT_TRUE(replay.ok()) << Message(replay.status());
    EXPECT_EQ(Products(replay->graph), Products(whole) - 1);
    whole = replay->graph;
    steps.insert(steps.end(), replay->steps.begin(), replay->steps.end());
  }
  EXPECT_EQ(Products(whole), 3);
  // The same steps from the whole graph give the same graph.
  RewriteWalk walk(graph_, rules_);
  ASSERT_TRUE(walk.Take(steps).ok());
  EXPECT_EQ(walk.graph().digest(), whole.digest());
}

TEST_F(CellReplayTest, ACellOfAnotherFormHasNoPlace) {
  const Graph other = *CleanUp(TestGraph(R"(
input x f32[64,64]
output "y" = add(matmul(relu(x), const f32[64,64] seed 1), tanh(x))
)"),
                               rules_);
  const std::vector<Cell> cells = CutIntoCells(other);
  ASSERT_THAT(cells, SizeIs(1));
  const StatusOr<CellReplay> replay = ReplayInCell(other, cells[0], Found(), one_rule_);
  EXPECT_EQ(replay.status().code(), StatusCode::kNotFound);
  EXPECT_EQ(Message(replay.status()), "matmul-reassociate: no place in the region");
}

TEST_F(CellReplayTest, ACellThatIsNotInTheGraphHasNoPlace) {
  const Graph other = *CleanUp(TestGraph("input x f32[64,64]\noutput \"y\" = tanh(x)\n"), rules_);
  const StatusOr<CellReplay> replay = ReplayInCell(other, cells_[1], Found(), one_rule_);
  EXPECT_EQ(replay.status().code(), StatusCode::kNotFound);
  EXPECT_EQ(Message(replay.status()), "matmul-reassociate: no place in the whole graph");
}

}  // namespace
}  // namespace ag
