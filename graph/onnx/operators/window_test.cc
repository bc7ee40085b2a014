// Bad operands of windows, normalizations and products.
#include <gtest/gtest.h>

#include "graph/onnx/operators/operators.h"

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

}  // namespace
}  // namespace ag
