#include "plan/schedule/segmenting.h"

#include <gtest/gtest.h>

#include "graph/operators_of.h"
#include "plan/format/plan_validate.h"
#include "plan/schedule/planner.h"
#include "plan/segments.h"
#include "plan/testing/testing.h"

namespace ag {
namespace {

// Four layers of eight samples, each one group.
Graph FourLayers() {
  return GraphOf(
      "input x f32[8,4]\na = softmax(x) axis=1\nb = softmax(a) axis=1\nc = softmax(b) axis=1\n"
      "output y = softmax(c) axis=1\n");
}

// A plan of one group for each operator, which take these times on one of `instances` parts.
PartPlan PlanWith(const Graph& graph, int32_t instances, std::vector<double> ns) {
  PartPlan made{.instances = instances, .ns = std::move(ns)};
  for (const NodeId id : OperatorsOf(graph)) {
    made.plan.groups.push_back({.pattern = "softmax", .nodes = {id}, .outputs = {{{id, 0}}}});
  }
  return made;
}

std::vector<std::pair<size_t, int32_t>> ShapeOf(const Segmentation& found) {
  std::vector<std::pair<size_t, int32_t>> shape;
  for (const Segment& segment : found.segments) {
    shape.emplace_back(segment.nodes.size(), segment.instances);
  }
  return shape;
}

using Shapes = std::vector<std::pair<size_t, int32_t>>;

TEST(ChooseSegments, TakesTheLeastSumOverCutsAndSizes) {
  const Graph graph = FourLayers();
  // The first layer wants single samples, the next two pairs, the last one all.
  const std::vector<PartPlan> plans = {PlanWith(graph, 1, {80, 80, 80, 20}),
                                       PlanWith(graph, 4, {15, 10, 10, 10}),
                                       PlanWith(graph, 8, {2, 8, 8, 10})};
  const std::vector<Segmentation> found = ChooseSegments(graph, plans);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(ShapeOf(found[0]), (Shapes{{1, 8}, {2, 4}, {1, 1}}));
  EXPECT_EQ(found[0].ns, 8 * 2 + 4 * 20 + 20);
  EXPECT_EQ(ShapeOf(found[1]), (Shapes{{1, 8}, {3, 4}}));
  EXPECT_EQ(found[1].ns, 8 * 2 + 4 * 30);
}

TEST(ScaleTo, DividesWhatTheWholeTakes) {
  PartPlan plan{.instances = 4, .ns = {1, 3}};
  ScaleTo(32, &plan);
  EXPECT_EQ(plan.ns, (std::vector<double>{2, 6}));
}

TEST(ChooseSegments, PartsGrowAlongTheGraph) {
  const Graph graph = FourLayers();
  const std::vector<PartPlan> plans = {PlanWith(graph, 1, {10, 10, 80, 80}),
                                       PlanWith(graph, 8, {10, 10, 2, 2})};
  EXPECT_TRUE(ChooseSegments(graph, plans).empty()) << "large parts first";
}

TEST(ChooseSegments, NoGroupReachesOverACut) {
  const Graph graph = FourLayers();
  std::vector<PartPlan> plans = {PlanWith(graph, 1, {80, 80, 20, 20}),
                                 PlanWith(graph, 8, {2, 2, 10, 10})};
  EXPECT_EQ(ShapeOf(ChooseSegments(graph, plans)[0]), (Shapes{{2, 8}, {2, 1}}));
  std::vector<Group>& groups = plans[0].plan.groups;  // The second and the third layer are one.
  groups[1].nodes.push_back(groups[2].nodes[0]);
  groups.erase(groups.begin() + 2);
  plans[0].ns = {80, 100, 20};
  EXPECT_EQ(ShapeOf(ChooseSegments(graph, plans)[0]), (Shapes{{3, 8}, {1, 1}}));
}

TEST(ChooseSegments, CutsWhereFewTensorsPass) {
  const Graph graph = GraphOf(
      "input x f32[8,4]\na = softmax(x) axis=1\nb = relu(a)\nc = exp(a)\nd = neg(a)\n"
      "output y = add(add(b, c), d)\n");
  const std::vector<NodeId> operators = OperatorsOf(graph);
  ASSERT_EQ(operators.size(), 6U);
  // By the times alone the cut would be where b, c and d pass, before the first addition.
  const std::vector<PartPlan> plans = {PlanWith(graph, 1, {80, 80, 80, 80, 1, 1}),
                                       PlanWith(graph, 8, {1, 1, 1, 1, 80, 80})};
  for (const Segmentation& found : ChooseSegments(graph, plans)) {
    const StatusOr<std::vector<GraphPiece>> pieces = PiecesOf(graph, {.segments = found.segments});
    ASSERT_EQ(ToString(pieces.status()), "OK");
    EXPECT_LE(TensorsBetween(graph, *pieces).size(), 2U);
  }
}

TEST(ChooseSegments, NothingWhereSamplesDependOnEachOther) {
  const Graph graph =
      GraphOf("input x f32[8,4]\na = softmax(x) axis=1\noutput y = softmax(a) axis=0\n");
  const std::vector<PartPlan> plans = {PlanWith(graph, 1, {80, 10}), PlanWith(graph, 8, {1, 10})};
  EXPECT_TRUE(ChooseSegments(graph, plans).empty());
}

constexpr std::string_view kTwoConvolutions =
    "input x f32[4,16,4,4]\nw = const f32[16,16,3,3] seed 1\nv = const f32[16] seed 2\n"
    "a = relu(conv(x, w, v) strides=[1,1] pads=[1,1,1,1] dilations=[1,1])\n"
    "output y = relu(conv(a, w, v) strides=[1,1] pads=[1,1,1,1] dilations=[1,1])\n";

TEST(MakeSegmentsPlan, KeepsTheLayoutBetweenSegments) {
  const Graph graph = GraphOf(kTwoConvolutions);
  const std::vector<NodeId> nodes = OperatorsOf(graph);
  RooflineTimes times(SmallSpec());
  for (const bool agrees : {true, false}) {
    const auto make = [&](const Graph& piece, int32_t instances) {
      const Layout layout = agrees || instances == 4 ? Layout::kBlocked16 : Layout::kPlain;
      return MakePlan(piece, SmallSpec(), {}, times, {.layout = layout}, 1);
    };
    const auto plan = MakeSegmentsPlan(
        graph, SmallSpec(), {{{nodes[0], nodes[1]}, 4, {}}, {{nodes[2], nodes[3]}, 2, {}}}, make);
    ASSERT_EQ(ToString(plan.status()), "OK");
    const std::vector<GraphPiece> pieces = *PiecesOf(graph, *plan);
    const Layout out = LayoutAtEnd(plan->segments[0].plan, Place::Kind::kOutput, 0,
                                   pieces[0].graph.outputs()[0].edge);
    const Layout in = LayoutAtEnd(plan->segments[1].plan, Place::Kind::kInput, 0,
                                  {pieces[1].graph.inputs()[0], 0});
    EXPECT_EQ(out, in);
    EXPECT_EQ(out, agrees ? Layout::kBlocked16 : Layout::kPlain);
    // A reorder of the graph's input, and with one layout none behind the convolution.
    EXPECT_EQ(plan->segments[0].plan.groups.size(), agrees ? 2U : 3U);
    Plan spoilt = *plan;
    for (Place& place : spoilt.segments[0].plan.places) {
      if (place.kind == Place::Kind::kOutput) place.port.layout = Layout::kChannelsLast;
    }
    EXPECT_NE(ToString(ValidatePlan(graph, spoilt, SmallSpec())), "OK");
  }
}

}  // namespace
}  // namespace ag
