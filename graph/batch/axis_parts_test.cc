#include "graph/batch/axis_parts.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "graph/text_form.h"

namespace ag {
namespace {

// The parts of all operands that pieces of the last operator's result along `axis` read:
// "cut 0, whole".
std::string PartsOf(const std::string& text, int axis) {
  const Graph graph = *ParseGraph(text);
  const NodeId last = graph.outputs()[0].edge.node;
  std::vector<std::string> parts;
  for (size_t i = 0; i < graph.node(last).inputs.size(); ++i) {
    const AxisPart part = PartOfOperand(graph, last, axis, i);
    parts.push_back(part.kind == AxisPart::Kind::kCut     ? fmt::format("cut {}", part.axis)
                    : part.kind == AxisPart::Kind::kWhole ? "whole"
                                                          : "mixed");
  }
  return Join(parts, ", ");
}

struct AxisCase {
  const char* name;
  const char* inputs;
  const char* result;
  int axis;
  const char* parts;
};

const AxisCase kAxisCases[] = {
    {"relu", "input x f32[4,6]\n", "relu(x)", 1, "cut 1"},
    {"bias", "input x f32[4,6]\nb = const f32[6] seed 1\n", "add(x, b)", 0, "cut 0, whole"},
    {"bias last", "input x f32[4,6]\nb = const f32[6] seed 1\n", "add(x, b)", 1, "cut 1, cut 0"},
    {"one row", "input x f32[4,6]\ninput y f32[1,6]\n", "mul(x, y)", 0, "cut 0, whole"},
    {"batch of a conv",
     "input x f32[4,3,8,8]\nw = const f32[2,3,3,3] seed 1\nb = const f32[2] seed 2\n",
     "conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]", 0, "cut 0, whole, whole"},
    {"channels of a conv",
     "input x f32[4,3,8,8]\nw = const f32[2,3,3,3] seed 1\nb = const f32[2] seed 2\n",
     "conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]", 1, "whole, cut 0, cut 0"},
    {"rows of a window",
     "input x f32[4,3,8,8]\nw = const f32[2,3,3,3] seed 1\nb = const f32[2] seed 2\n",
     "conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]", 2, "mixed, whole, whole"},
    {"rows of a pointwise conv",
     "input x f32[4,3,8,8]\nw = const f32[2,3,1,1] seed 1\nb = const f32[2] seed 2\n",
     "conv(x, w, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1]", 2, "cut 2, whole, whole"},
    {"rows of a strided one",
     "input x f32[4,3,8,8]\nw = const f32[2,3,1,1] seed 1\nb = const f32[2] seed 2\n",
     "conv(x, w, b) strides=[2,2] pads=[0,0,0,0] dilations=[1,1]", 2, "mixed, whole, whole"},
    {"channels of a depthwise conv",
     "input x f32[4,3,8,8]\nw = const f32[3,1,3,3] seed 1\nb = const f32[3] seed 2\n",
     "conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1] group=3", 1,
     "cut 1, cut 0, cut 0"},
    {"rows of a product", "input x f32[4,6]\ninput y f32[6,8]\n", "matmul(x, y)", 0,
     "cut 0, whole"},
    {"columns of a product", "input x f32[4,6]\ninput y f32[6,8]\n", "matmul(x, y)", 1,
     "whole, cut 1"},
    {"heads of a product", "input x f32[2,3,4,6]\ninput y f32[2,3,6,4]\n", "matmul(x, y)", 1,
     "cut 1, cut 1"},
    {"a product with one matrix", "input x f32[2,4,6]\ninput y f32[6,4]\n", "matmul(x, y)", 0,
     "cut 0, whole"},
    {"softmax, rows", "input x f32[4,6]\n", "softmax(x) axis=1", 0, "cut 0"},
    {"softmax, its axis", "input x f32[4,6]\n", "softmax(x) axis=1", 1, "mixed"},
    {"a kept axis", "input x f32[4,6,8]\n", "reduce_mean(x) axes=[1] keepdims=0", 1, "cut 2"},
    {"a reduced axis", "input x f32[4,6]\n", "reduce_mean(x) axes=[0]", 0, "mixed"},
    {"pixels of a pool", "input x f32[4,6,8,8]\n",
     "max_pool(x) kernel_shape=[2,2] strides=[2,2] pads=[0,0,0,0] dilations=[1,1]", 3, "mixed"},
    {"concat, its axis", "input x f32[4,6]\ninput y f32[4,6]\n", "concat(x, y) axis=1", 1,
     "mixed, mixed"},
    {"concat, batch", "input x f32[4,6]\ninput y f32[4,6]\n", "concat(x, y) axis=1", 0,
     "cut 0, cut 0"},
    {"transpose", "input x f32[4,6,8]\n", "transpose(x) perm=[2,0,1]", 0, "cut 2"},
    {"reshape, first axis", "input x f32[4,6,8]\n", "reshape(x) shape=[24,8]", 0, "cut 0"},
    {"reshape, last axis", "input x f32[4,6,8]\n", "reshape(x) shape=[24,8]", 1, "cut 2"},
    {"reshape, heads", "input x f32[4,6]\n", "reshape(x) shape=[4,2,3]", 1, "cut 1"},
    {"reshape, inside an axis", "input x f32[4,6]\n", "reshape(x) shape=[4,2,3]", 2, "mixed"},
    {"padded", "input x f32[4,6]\n", "pad(x) pads=[0,1,0,1]", 1, "mixed"},
    {"beside the pads", "input x f32[4,6]\n", "pad(x) pads=[0,1,0,1]", 0, "cut 0"},
    {"rows of indices", "input x f32[9,6]\ninput i i64[4,5]\n", "gather(x, i)", 0, "whole, cut 0"},
    {"behind indices", "input x f32[9,6]\ninput i i64[4,5]\n", "gather(x, i)", 2, "cut 1, whole"},
    {"one token", "input x f32[4,9,6]\ni = const i64[] {0}\n", "gather(x, i) axis=1", 1,
     "cut 2, whole"},
};

TEST(AxisParts, OfEachOperator) {
  for (const AxisCase& c : kAxisCases) {
    const std::string text = std::string(c.inputs) + "output r = " + c.result + "\n";
    EXPECT_EQ(PartsOf(text, c.axis), c.parts) << c.name;
  }
}

TEST(AxisParts, NobodyKnowsOfOpaqueOnes) {
  const Graph graph = *ParseGraph(
      "input x f32[4,6]\noutput r = opaque(x) domain=\"com.x\" onnx_node=\"n\" -> f32[4,6]\n");
  EXPECT_FALSE(CanCut(graph, graph.outputs()[0].edge.node, 0));
}

TEST(AxisParts, ResultAxisIsTheWayBack) {
  const Graph graph = *ParseGraph("input x f32[4,6,8]\noutput r = transpose(x) perm=[2,0,1]\n");
  const NodeId last = graph.outputs()[0].edge.node;
  EXPECT_EQ(ResultAxisOf(graph, last, 0, 0), 1);
  EXPECT_EQ(ResultAxisOf(graph, last, 0, 2), 0);
  const Graph sum = *ParseGraph("input x f32[4,6]\noutput r = reduce_sum(x) axes=[0] keepdims=0\n");
  EXPECT_EQ(ResultAxisOf(sum, sum.outputs()[0].edge.node, 0, 0), std::nullopt);
}

}  // namespace
}  // namespace ag
