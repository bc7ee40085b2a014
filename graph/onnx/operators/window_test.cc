// Bad operands of windows, normalizations and products, and forms that ONNX's node tests leave out.
#include <gtest/gtest.h>

#include "base/random.h"
#include "graph/onnx/operators/testing_node.h"

namespace ag {
namespace {

OnnxNode WindowNode(std::string op_type, size_t inputs, std::vector<int64_t> kernel) {
  OnnxNode node{.op_type = std::move(op_type)};
  node.inputs.assign(inputs, "x");
  node.outputs.assign(1, "y");
  if (!kernel.empty()) {
    node.attributes.push_back({.name = "kernel_shape",
                               .type = OnnxAttributeType::kInts,
                               .ints = {kernel.begin(), kernel.end()}});
  }
  return node;
}

TEST(Windows, KernelShapeMustBeThatOfTheWeights) {
  const Tensor x = Tensor::FromFloats({1, 1, 64}, std::vector<float>(64, 1));
  const Tensor w = Tensor::FromFloats({1, 1, 1}, std::vector<float>{1});
  for (const std::string name : {"Conv", "ConvTranspose"}) {
    const OnnxNode node = WindowNode(name, 2, {64});
    EXPECT_EQ(RunOperator({.node = node, .opset = 17, .inputs = {&x, &w}}).status().code(),
              StatusCode::kInvalidArgument)
        << name;
  }
}

Tensor RandomDoubles(Random& random, Shape shape) {
  std::vector<double> values(static_cast<size_t>(NumElements(shape)));
  for (double& value : values) value = random.Normal();
  return OfType(DType::kFloat64, std::move(shape), values);
}

// Convolves in three axes of equal sizes: strides 2 along the last axis, padding of one, bias
// first, then channels and elements of the window in ascending order.
std::vector<double> PlainConvolution(const Tensor& x, const Tensor& w, const Tensor& bias,
                                     int64_t groups) {
  const Shape &in = x.type().shape, &weight = w.type().shape;
  const int64_t size = in[2], k = weight[2], tall = size + 3 - k, wide = (size + 2 - k) / 2 + 1;
  const int64_t plane = size * size * size, taps = k * k * k;
  std::vector<double> out;
  for (int64_t i = 0; i < in[0] * weight[0] * tall * tall * wide; ++i) {
    const int64_t at[3] = {i / wide / tall % tall - 1, i / wide % tall - 1, i % wide * 2 - 1};
    const int64_t o = i / wide / tall / tall % weight[0], n = i / wide / tall / tall / weight[0];
    double sum = bias.At(o);
    for (int64_t t = 0; t < weight[1] * taps; ++t) {
      const int64_t c = n * in[1] + o / (weight[0] / groups) * weight[1] + t / taps;
      const int64_t d = at[0] + t / k / k % k, h = at[1] + t / k % k, v = at[2] + t % k;
      if (std::min({d, h, v}) < 0 || std::max({d, h, v}) >= size) continue;
      sum += x.At(c * plane + (d * size + h) * size + v) * w.At(o * weight[1] * taps + t);
    }
    out.push_back(sum);
  }
  return out;
}

TEST(Windows, ConvolutionsHaveTheBitsOfThePlainLoop) {
  for (const int64_t groups : {1, 2}) {
    Random random(static_cast<uint64_t>(groups));
    const Tensor x = RandomDoubles(random, {2, 4, 9, 9, 9});
    const Tensor w = RandomDoubles(random, {6, 4 / groups, 3, 3, 3});
    const Tensor bias = RandomDoubles(random, {6});
    OnnxNode node = WindowNode("Conv", 3, {3, 3, 3});
    const auto add = [&](const char* name, std::vector<int64_t> values) {
      node.attributes.push_back(
          {.name = name, .type = OnnxAttributeType::kInts, .ints = std::move(values)});
    };
    add("pads", {1, 1, 1, 1, 1, 1});
    add("strides", {1, 1, 2});
    node.attributes.push_back({.name = "group", .type = OnnxAttributeType::kInt, .i = groups});
    for (const int threads : {1, 3}) {
      const auto y =
          RunOperator({.node = node, .opset = 17, .inputs = {&x, &w, &bias}, .threads = threads});
      ASSERT_TRUE(y.ok()) << ToString(y.status());
      EXPECT_EQ(Numbers((*y)[0]), PlainConvolution(x, w, bias, groups)) << groups << " groups";
    }
  }
}

// Operands without elements whose other sizes are large.
TEST(Windows, OperandsWithoutElementsTakeNoMemory) {
  const Tensor x = Tensor::Zeros({DType::kFloat32, {1 << 20, 1 << 19, 0, 0}});
  for (const std::string name : {"GlobalMaxPool", "Det"}) {
    const OnnxNode node = WindowNode(name, 1, {});
    const OperatorRun run = {.node = node, .opset = 17, .inputs = {&x}, .bytes_max = 1 << 20};
    EXPECT_EQ(RunOperator(run).status().code(), StatusCode::kResourceExhausted) << name;
  }
}

TEST(Windows, MeansOfNothingTakeNoMemory) {
  const Tensor x = Tensor::Zeros({DType::kFloat32, {0, int64_t{1} << 39, 1, 1}});
  const OnnxNode node = WindowNode("MeanVarianceNormalization", 1, {});
  const auto same = RunOperator({.node = node, .opset = 13, .inputs = {&x}});
  ASSERT_TRUE(same.ok()) << ToString(same.status());
  EXPECT_EQ((*same)[0].type(), x.type());
}

TEST(Windows, AThresholdIsOneElement) {
  const Tensor boxes = Tensor::Zeros({DType::kFloat32, {1, 2, 4}});
  const Tensor scores = Tensor::Zeros({DType::kFloat32, {1, 1, 2}});
  const Tensor most = Tensor::FromDoubles({DType::kInt64, {1}}, std::vector<double>{1});
  const Tensor none = Tensor::Zeros({DType::kFloat32, {0}});
  const OnnxNode node = WindowNode("NonMaxSuppression", 4, {});
  const OperatorRun run = {.node = node, .opset = 11, .inputs = {&boxes, &scores, &most, &none}};
  EXPECT_EQ(RunOperator(run).status().code(), StatusCode::kInvalidArgument);
}

TEST(Windows, NoBoxesTakeNoTime) {
  const Tensor boxes = Tensor::Zeros({DType::kFloat32, {1 << 20, 0, 4}});
  const Tensor scores = Tensor::Zeros({DType::kFloat32, {1 << 20, 1 << 19, 0}});
  const Tensor most = Tensor::FromDoubles({DType::kInt64, {1}}, std::vector<double>{1});
  const OnnxNode boxes_node = WindowNode("NonMaxSuppression", 3, {});
  const auto none =
      RunOperator({.node = boxes_node, .opset = 11, .inputs = {&boxes, &scores, &most}});
  ASSERT_TRUE(none.ok()) << ToString(none.status());
  EXPECT_EQ((*none)[0].type().ToString(), "i64[0,3]");
}

TEST(Windows, BlocksAddUpInIntegers) {
  const int64_t big = int64_t{1} << 60;
  const auto y = RunNode({.op_type = "Col2Im", .opset = 18},
                         {I64({1, 2, 2}, {big, 1, 1, 2}), I64({1}, {3}), I64({1}, {2})});
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_EQ((*y)[0].As<int64_t>()[0], big);
  EXPECT_EQ(Numbers((*y)[0])[1], 2);
  EXPECT_EQ(CodeOf({.op_type = "Col2Im", .opset = 18},
                   {I64({1, 2, 1}, {1, 1}), I64({1}, {3}), I64({1}, {2})}),
            StatusCode::kInvalidArgument);
}

TEST(Windows, IndicesOfUnpooledElementsAreInside) {
  OnnxNode node{.op_type = "MaxUnpool"};
  node.inputs = {"x", "i"};
  node.outputs = {"y"};
  node.attributes.push_back(
      {.name = "kernel_shape", .type = OnnxAttributeType::kInts, .ints = {2}});
  const Tensor x = F32({1, 1, 1}, {5});
  for (const auto& [index, code] :
       {std::pair{2, StatusCode::kOutOfRange}, std::pair{-1, StatusCode::kOutOfRange},
        std::pair{1, StatusCode::kOk}}) {
    const Tensor at = I64({1, 1, 1}, {index});
    EXPECT_EQ(RunOperator({.node = node, .opset = 11, .inputs = {&x, &at}}).status().code(), code);
  }
}

TEST(Products, OfIntegersAreExact) {
  const int64_t big = (int64_t{1} << 61) + 1;
  const auto y = RunNode({.op_type = "Einsum", .strings = {{"equation", "i,j->ij"}}},
                         {I64({1}, {big}), I64({2}, {1, 8})});
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_EQ((*y)[0].As<int64_t>()[0], big);
  EXPECT_EQ((*y)[0].As<int64_t>()[1], 8);  // Wraps around.
}

// Found by a fuzzer: the types of a contraction of 10^11 terms took minutes.
TEST(Products, TypesNeedNoWork) {
  OnnxNode node{.op_type = "Einsum", .inputs = {"x", "y"}, .outputs = {"z"}};
  node.attributes.push_back(
      {.name = "equation", .type = OnnxAttributeType::kString, .s = "bij,bjk->bik"});
  const Tensor x = Tensor::Zeros({DType::kInt8, {1, 2000, 5000}});
  const Tensor y = Tensor::Zeros({DType::kInt8, {1, 5000, 2000}});
  const auto z = RunOperator({.node = node, .opset = 12, .inputs = {&x, &y}, .types_only = true});
  ASSERT_TRUE(z.ok()) << ToString(z.status());
  EXPECT_EQ((*z)[0].type().shape, (Shape{1, 2000, 2000}));
}

TEST(Powers, OfIntegersTakeTheLeastExponent) {
  const auto y = RunNode({.op_type = "Pow"},
                         {I64({3}, {1, -1, 2}), I64({3}, {INT64_MIN, INT64_MIN, INT64_MIN})});
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_EQ(Numbers((*y)[0]), (std::vector<double>{1, 1, 0}));
}

TEST(Normalizations, ScalesBroadcast) {
  const Tensor x = F32({1, 2, 2}, {-1, 1, -1, 1});
  const auto y =
      RunNode({.op_type = "LayerNormalization", .ints = {{"axis", 1}}}, {x, F32({2, 1}, {1, 10})});
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_NEAR(Numbers((*y)[0])[1], 1, 1e-4);
  EXPECT_NEAR(Numbers((*y)[0])[3], 10, 1e-3);
  EXPECT_EQ(
      CodeOf({.op_type = "LayerNormalization", .ints = {{"axis", 1}}}, {x, F32({3}, {1, 10, 3})}),
      StatusCode::kInvalidArgument);
}

// Before opset 14 a node that has the further results trains.
TEST(Normalizations, OldNodesTrain) {
  const Tensor x = F32({2, 1}, {1, 3}), one = F32({1}, {1}), zero = F32({1}, {0});
  const auto y = RunNode({.op_type = "BatchNormalization", .opset = 9, .outputs = 5},
                         {x, one, zero, zero, one});
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_NEAR(Numbers((*y)[0])[1], 1, 1e-4);
  EXPECT_NEAR(Numbers((*y)[1])[0], 0.2, 1e-6);
  EXPECT_EQ(Numbers((*y)[3]), std::vector<double>{2});
}

}  // namespace
}  // namespace ag
