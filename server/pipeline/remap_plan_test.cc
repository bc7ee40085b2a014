#include "server/pipeline/remap_plan.h"

#include <gtest/gtest.h>

#include "graph/operators_of.h"
#include "graph/text_form.h"
#include "plan/format/plan_validate.h"
#include "plan/schedule/planner.h"
#include "plan/schedule/segmenting.h"
#include "plan/segments.h"
#include "plan/testing/testing.h"

namespace ag {
namespace {

constexpr std::string_view kFrom =
    "input x f32[1,16,8,8]\n"
    "w = const f32[16,16,1,1] seed 1\nb = const f32[16] seed 2\n"
    "v = const f32[16,16,1,1] seed 3\nk = const f32[1,16,1,1] seed 4\n"
    "p = conv(x, w, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1] group=1\n"
    "q = conv(x, v, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1] group=1\n"
    "r = relu(q)\noutput y = mul(add(p, r), k)\n";

Graph GraphOf(std::string_view text) {
  MemoryWeights weights;
  return *ParseGraph(text, &weights);
}

// A plan transfers to a graph that differs in order, constants or commutative operands only.
TEST(RemapPlan, FollowsOperatorsWhereverTheyStand) {
  const std::string head =
      "input x f32[1,16,8,8]\n"
      "w = const f32[16,16,1,1] seed 7\nb = const f32[16] seed 8\n"
      "v = const f32[16,16,1,1] seed 9\nk = const f32[1,16,1,1] seed 5\n";
  const std::string conv = " strides=[1,1] pads=[0,0,0,0] dilations=[1,1] group=1\n";
  const std::string p = "p = conv(x, w, b)" + conv, q = "q = conv(x, v, b)" + conv;
  const struct {
    const char* name;
    std::string to, status;
  } cases[] = {
      {"other constants", head + p + q + "r = relu(q)\noutput y = mul(add(p, r), k)\n", "OK"},
      {"another order", head + q + "r = relu(q)\n" + p + "output y = mul(add(p, r), k)\n", "OK"},
      {"operands swapped", head + q + "r = relu(q)\n" + p + "output y = mul(k, add(r, p))\n", "OK"},
      {"another activation", head + p + q + "r = tanh(q)\noutput y = mul(add(p, r), k)\n",
       "FAILED_PRECONDITION: no operator is as Conv 5 was"},
      {"an operand that is none", head + p + q + "r = relu(q)\noutput y = mul(add(p, q), k)\n",
       "FAILED_PRECONDITION: no operator is as Conv 5 was"},
      {"one more", head + p + q + "r = relu(q)\noutput y = mul(add(p, r), k)\noutput tanh(p)\n",
       "FAILED_PRECONDITION: no operator is as Conv 3 was"},
      {"another input",
       "input x f32[2,16,8,8]\n" + head.substr(head.find('\n') + 1) + p + q +
           "r = relu(q)\noutput y = mul(add(p, r), k)\n",
       "FAILED_PRECONDITION: no operator is as Input 0 was"},
  };
  const DeviceSpec spec = LoadSpec(AG_SOURCE_DIR, "h200");
  RooflineTimes times(spec);
  const Graph from = GraphOf(kFrom);
  const Plan plan = *MakePlan(from, spec, Policy(), times, {}, 2);
  for (const auto& c : cases) {
    const Graph to = GraphOf(c.to);
    const StatusOr<Plan> moved = RemapPlan(from, plan, to, spec);
    EXPECT_EQ(ToString(moved.status()), c.status) << c.name;
    if (!moved.ok()) continue;
    EXPECT_EQ(ToString(ValidatePlan(to, *moved, spec)), "OK") << c.name;
    EXPECT_EQ(moved->groups.size(), plan.groups.size()) << c.name;
    EXPECT_EQ(moved->streams.size(), plan.streams.size()) << c.name;
  }
}

TEST(RemapPlan, MovesSegments) {
  const std::string head = "input x f32[4,8]\na = softmax(x) axis=1\n";
  const std::string end = "output y = softmax(s) axis=1\n";
  const Graph from = GraphOf(head + "s = add(relu(a), exp(a))\n" + end);
  const Graph to = GraphOf(head + "s = add(exp(a), relu(a))\n" + end);
  const DeviceSpec spec = LoadSpec(AG_SOURCE_DIR, "h200");
  RooflineTimes times(spec);
  const std::vector<NodeId> nodes = OperatorsOf(from);
  ASSERT_EQ(nodes.size(), 5U);
  const auto make = [&](const Graph& piece, int32_t) {
    return MakePlan(piece, spec, Policy(), times, {.grouped = false}, 1);
  };
  const auto plan = MakeSegmentsPlan(
      from, spec, {{{nodes[0], nodes[1]}, 4, {}}, {{nodes[2], nodes[3], nodes[4]}, 2, {}}}, make);
  ASSERT_EQ(ToString(plan.status()), "OK");
  const StatusOr<Plan> moved = RemapPlan(from, *plan, to, spec);
  ASSERT_EQ(ToString(moved.status()), "OK");
  EXPECT_EQ(ToString(ValidatePlan(to, *moved, spec)), "OK");
  for (const NodeId id : moved->segments[0].nodes) {
    EXPECT_NE(to.node(id).op, OpKind::kExp);  // It was the second operand, and is the first.
  }
}

}  // namespace
}  // namespace ag
