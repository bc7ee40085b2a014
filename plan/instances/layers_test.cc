#include "plan/instances/layers.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "plan/instances/split.h"
#include "plan/instances/sub_graphs.h"
#include "plan/testing/testing.h"

namespace ag {
namespace {

// "matmul add relu | softmax": the operators of each layer.
std::string Text(const LayeredGraph& layered) {
  std::vector<std::string> layers;
  for (const Layer& layer : layered.layers) {
    std::vector<std::string> names;
    for (const NodeId id : layer.nodes) {
      names.emplace_back(Info(layered.graph.node(id).op).text_name);
    }
    layers.push_back(Join(names, " "));
  }
  return Join(layers, " | ");
}

TEST(Layers, AreAnAnchorAndWhatFollowsElementByElement) {
  const LayeredGraph layered =
      FormLayers(GraphOf("input x f32[8,4]\nw = const f32[4,4] seed 1\nb = const f32[4] seed 2\n"
                         "h = relu(add(matmul(x, w), b))\ns = softmax(h) axis=1\n"
                         "output y = mul(s, h)\n"),
                 "fp32");
  EXPECT_EQ(Text(layered), "matmul add relu | softmax mul");
  const Layer& dense = layered.layers[0];
  EXPECT_EQ(dense.weight_bytes, 4 * 4 * 4 + 4 * 4);
  EXPECT_EQ(dense.matrix_flops, 2 * 8 * 4 * 4);
  EXPECT_EQ(dense.vector_flops, 8 * 4 + 8 * 4);
  EXPECT_EQ(dense.in_place.node, -1);
  // The product also reads what softmax reads, so it cannot write over it.
  EXPECT_EQ(layered.layers[1].in_place.node, -1);
  EXPECT_EQ(FormLayers(layered.graph, "fp16").Bytes({layered.last(0), 0}), 8 * 4 * 2);
}

TEST(Layers, AResidualMayBeWrittenOver) {
  const LayeredGraph layered = FormLayers(
      GraphOf("input x f32[8,4]\nw = const f32[4,4] seed 1\nh = softmax(x) axis=1\n"
              "output y = relu(add(matmul(h, w), h))\noutput z = relu(softmax(x) axis=0)\n"),
      "fp32");
  EXPECT_EQ(Text(layered), "softmax | matmul add relu | softmax relu");
  EXPECT_EQ(layered.layers[1].in_place.node, -1);  // The product reads all of h.
  const LayeredGraph apart =
      FormLayers(GraphOf("input x f32[8,4]\nw = const f32[4,4] seed 1\nh = softmax(x) axis=1\n"
                         "g = softmax(h) axis=0\noutput y = relu(add(matmul(g, w), h))\n"),
                 "fp32");
  EXPECT_EQ(Text(apart), "softmax | softmax | matmul add relu");
  EXPECT_EQ(apart.layers[2].in_place.node, apart.last(0));
}

TEST(Layers, PeakHoldsAResidualUntilItIsRead) {
  // 128 bytes each: x, h, g, y. The second layer has x, h (residual) and g; the third h, g, y.
  const LayeredGraph layered =
      FormLayers(GraphOf("input x f32[8,4]\nw = const f32[4,4] seed 1\nh = softmax(x) axis=1\n"
                         "g = softmax(h) axis=0\noutput y = relu(add(matmul(g, w), h))\n"),
                 "fp32");
  EXPECT_EQ(PeakBytes(layered, {0}), 256);
  EXPECT_EQ(PeakBytes(layered, {0, 1}), 256);  // x is gone; h leaves, since the third reads it.
  EXPECT_EQ(PeakBytes(layered, {0, 1, 2}), 384);
  EXPECT_EQ(PeakBytes(layered, {2}), 384);
}

TEST(SplitInfo, TriesFactorsAsPublished) {
  EXPECT_EQ(SplitFactors(12), (std::vector<int64_t>{1, 2, 4, 8, 9, 10, 11, 12}));
  EXPECT_EQ(SplitFactors(6), (std::vector<int64_t>{1, 2, 4, 6}));
  EXPECT_EQ(SplitFactors(1), std::vector<int64_t>{1});
}

SplitInfo SplitOf(const std::string& text, int64_t buffer_bytes) {
  const LayeredGraph layered = FormLayers(GraphOf(text), "fp32");
  std::vector<int> layers;
  for (int i = 0; i < static_cast<int>(layered.layers.size()); ++i) layers.push_back(i);
  return BestSplit(layered, layers, buffer_bytes);
}

TEST(SplitInfo, IsTheSmallestFactorThatFits) {
  const std::string relu = "input x f32[8,4]\noutput y = softmax(x) axis=1\n";  // 256 bytes.
  EXPECT_EQ(SplitOf(relu, 256).factor, 1);
  EXPECT_EQ(SplitOf(relu, 255).factor, 2);
  EXPECT_EQ(SplitOf(relu, 85).factor, 4);  // 3 is not tried.
  EXPECT_EQ(SplitOf(relu, 32).factor, 8);
  const SplitInfo none = SplitOf(relu, 31);
  EXPECT_EQ(none.factor, 1);
  EXPECT_FALSE(none.fits);
  // Four do not divide six rows, so six are taken.
  EXPECT_EQ(SplitOf("input x f32[6,4]\noutput y = softmax(x) axis=1\n", 48).factor, 6);
}

TEST(SplitInfo, CutsMostOperatorsThenLeastThenOutermost) {
  const std::string wide = "input x f32[8,8]\n";
  // Both axes cut the one operator in two: the outer one.
  EXPECT_EQ(SplitOf(wide + "output y = relu(x)\n", 256).axis, 0);
  // Along axis 0 softmax is not cut, along axis 1 both are.
  const std::string two = wide + "output y = softmax(softmax(x) axis=0) axis=0\n";
  const SplitInfo split = SplitOf(two, 256);
  EXPECT_EQ(split.axis, 1);
  EXPECT_EQ(split.operators_cut, 2);
  // One row of 64 cannot be cut along axis 0.
  EXPECT_EQ(SplitOf("input x f32[1,64]\noutput y = relu(x)\n", 256).axis, 1);
  // A transpose moves the axis.
  const SplitInfo turned =
      SplitOf("input x f32[8,4]\noutput y = transpose(softmax(x) axis=1) perm=[1,0]\n", 128);
  EXPECT_EQ(turned.axis, 1);
  EXPECT_EQ(turned.operators_cut, 2);
}

TEST(SplitInfo, NoPieceReadsAllPieces) {
  // Rows of the scores are cut with x, but every row needs all of x once more.
  const SplitInfo split = SplitOf(
      "input x f32[8,4]\nh = softmax(x) axis=1\nt = transpose(h) perm=[1,0]\n"
      "output y = matmul(h, t)\n",
      200);
  EXPECT_LT(split.operators_cut, 3);
}

// The layers of each sub-graph and its factor: "0 1 x8, 2 x4".
std::string SubGraphsOf(const std::string& text, int64_t buffer_bytes) {
  const LayeredGraph layered = FormLayers(GraphOf(text), "fp32");
  std::vector<std::string> subs;
  for (const SubGraph& sub : FormSubGraphs(layered, buffer_bytes)) {
    subs.push_back(fmt::format("{} x{}", Join(sub.layers, " "), sub.split.factor));
  }
  return Join(subs, ", ");
}

TEST(SubGraphs, AChainIsMergedWhileTheFactorDoesNotFall) {
  // Factors alone: 256 bytes / 64 = 4, 4, then [8,1]: 128 + 32 = 160 -> 4, then 64 -> 1.
  const std::string text =
      "input x f32[8,4]\nw = const f32[4,1] seed 1\na = softmax(x) axis=1\n"
      "b = softmax(a) axis=1\nc = matmul(b, w)\noutput d = softmax(c) axis=1\n";
  EXPECT_EQ(SubGraphsOf(text, 64), "0 1 2 x4, 3 x1");
  EXPECT_EQ(SubGraphsOf(text, 1000), "0 1 2 3 x1");
}

TEST(SubGraphs, AFactorMayGrowTowardsTheOutput) {
  // [8,1] -> [8,4]: 160 bytes, factor 4; before it 64 bytes, factor 1.
  const std::string text =
      "input x f32[8,1]\nw = const f32[1,4] seed 1\na = softmax(x) axis=1\n"
      "output b = matmul(a, w)\n";
  EXPECT_EQ(SubGraphsOf(text, 64), "0 1 x4");
}

TEST(SubGraphs, ADiamondOfTwoBranches) {
  // Alone each has factor 2 or 4; merged, the concat holds four tensors of 128 bytes.
  const std::string text =
      "input x f32[8,4]\nh = softmax(x) axis=1\np = softmax(h) axis=1\nq = softmax(h) axis=1\n"
      "output y = softmax(concat(p, q) axis=1) axis=1\n";
  EXPECT_EQ(SubGraphsOf(text, 128), "0 1 2 3 4 x4");
}

TEST(SubGraphs, AResidualIsADiamond) {
  const std::string text =
      "input x f32[8,4]\nw = const f32[4,4] seed 1\nh = softmax(x) axis=1\n"
      "g = softmax(h) axis=1\noutput y = relu(add(matmul(g, w), h))\n";
  EXPECT_EQ(SubGraphsOf(text, 96), "0 1 2 x4");
}

TEST(SubGraphs, ABranchOfMoreReaders) {
  // 256, 256, 160 and 64 bytes: factors 4, 4, 2, 1. Readers with a smaller factor stay apart.
  const std::string text =
      "input x f32[8,4]\nw = const f32[4,1] seed 1\nh = softmax(x) axis=1\n"
      "output p = softmax(h) axis=1\noutput q = softmax(matmul(h, w)) axis=1\n";
  EXPECT_EQ(SubGraphsOf(text, 96), "0 1 x4, 2 x2, 3 x1");
}

TEST(SubGraphs, AreCutWhereSamplesMix) {
  // A sum over the batch is not cut along it: it is cut along its columns, softmax along rows.
  const std::string text =
      "input x f32[8,4]\nh = softmax(x) axis=1\ns = reduce_sum(h) axes=[0]\n"
      "output y = softmax(s) axis=1\n";
  EXPECT_EQ(SubGraphsOf(text, 128), "0 x2, 1 x2, 2 x1");
}

}  // namespace
}  // namespace ag
