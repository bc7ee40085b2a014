// What ONNX's node tests leave out of attention and rotary positions.
#include <gtest/gtest.h>

#include "graph/onnx/operators/testing_node.h"

namespace ag {
namespace {

Tensor Floats(Shape shape, const std::vector<float>& values) {
  return Tensor::FromFloats(std::move(shape), values);
}

// One head of one element: queries of zero attend all keys alike.
const Tensor kQueries = Tensor::Zeros({DType::kFloat32, {1, 1, 2, 1}});
const Tensor kValues = Floats({1, 1, 2, 1}, {3, 5});

TEST(AttentionOperators, QueriesWithoutKeysGiveZeros) {
  const std::vector<double> flags = {0, 0, 0, 1};
  const Tensor mask = Tensor::FromDoubles({DType::kBool, {2, 2}}, flags);
  const auto y = RunNode({.op_type = "Attention", .opset = 23}, {kQueries, kValues, kValues, mask});
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_EQ(Numbers((*y)[0]), (std::vector<double>{0, 5}));
}

// The first query goes with the key after the past ones.
TEST(AttentionOperators, CausalAfterPast) {
  TestNode node{.op_type = "Attention", .opset = 23, .outputs = 3, .ints = {{"is_causal", 1}}};
  const Tensor past = Floats({1, 1, 1, 1}, {1});
  const auto y = RunNode(node, {kQueries, kValues, kValues, Tensor(), past, past});
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_EQ(Numbers((*y)[0]), (std::vector<double>{2, 3}));
  EXPECT_EQ(Numbers((*y)[2]), (std::vector<double>{1, 3, 5}));
}

// Since opset 24 a short mask excludes the keys that it does not name, and an operand says how many
// keys are no padding.
TEST(AttentionOperators, PaddingOfOpset24) {
  const Tensor mask = Floats({2, 1}, {0, 0});
  TestNode node{.op_type = "Attention", .opset = 24};
  const auto masked = RunNode(node, {kQueries, kValues, kValues, mask});
  ASSERT_TRUE(masked.ok()) << ToString(masked.status());
  EXPECT_EQ(Numbers((*masked)[0]), (std::vector<double>{3, 3}));
  const int64_t one = 1, three = 3;
  const auto run = [&](const int64_t& used) {
    return RunNode(node, {kQueries, kValues, kValues, Tensor(), Tensor(), Tensor(),
                          Tensor::FromInts({1}, {&used, 1})});
  };
  EXPECT_EQ(Numbers((*run(one))[0]), (std::vector<double>{3, 3}));
  node.ints = {{"is_causal", 1}};
  EXPECT_EQ(Numbers((*run(one))[0]), (std::vector<double>{0, 3}));
  EXPECT_EQ(ToString(run(three).status()),
            "OUT_OF_RANGE: operator \"Attention\": input 6: 3 of 2 keys");
}

TEST(AttentionOperators, SayWhatDoesNotFit) {
  const TestNode node{.op_type = "Attention", .opset = 23};
  const Tensor wide = Floats({1, 1, 2, 2}, {1, 2, 3, 4}), flat = Floats({1, 2, 1}, {1, 2});
  EXPECT_EQ(
      ToString(RunNode(node, {kQueries, wide, wide}).status()),
      "INVALID_ARGUMENT: operator \"Attention\": queries [1,1,2,1], keys [1,1,2,2] and values "
      "[1,1,2,2] do not fit");
  EXPECT_EQ(ToString(RunNode(node, {flat, flat, flat}).status()),
            "INVALID_ARGUMENT: operator \"Attention\": input 0: 0 heads of f32[1,2,1]");
  const Tensor three = Tensor::Zeros({DType::kFloat32, {3}});
  EXPECT_EQ(
      ToString(RunNode(node, {kQueries, kValues, kValues, three}).status()),
      "INVALID_ARGUMENT: operator \"Attention\": input 3: f32[3] does not broadcast to [1,1,2,2]");
}

// Sizes of operands without elements decide no memory.
TEST(AttentionOperators, OperandsWithoutElementsTakeNoMemory) {
  const Tensor x = Tensor::Zeros({DType::kFloat32, {1 << 20, 1, 1 << 19, 0}});
  for (const int64_t causal : {0, 1}) {
    const TestNode node{.op_type = "Attention", .opset = 23, .ints = {{"is_causal", causal}}};
    const auto y = RunNode(node, {x, x, x});
    ASSERT_TRUE(y.ok()) << ToString(y.status());
    EXPECT_EQ((*y)[0].type(), x.type());
  }
  const Tensor rows = Tensor::Zeros({DType::kFloat32, {int64_t{1} << 39, 0}});
  const Tensor scale = Tensor::Zeros({DType::kFloat32, {0}});
  const TestNode moments{.op_type = "LayerNormalization", .outputs = 3};
  EXPECT_EQ(RunNode(moments, {rows, scale}).status().code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(RunNode({.op_type = "LayerNormalization"}, {rows, scale}).ok());
}

TEST(AttentionOperators, RotaryPositionsAreChecked) {
  const Tensor x = Floats({1, 1, 1, 2}, {1, 2}), angles = Floats({2, 1}, {1, 0});
  const auto run = [&](int64_t position) {
    return RunNode({.op_type = "RotaryEmbedding", .opset = 23},
                   {x, angles, angles, Tensor::FromInts({1, 1}, {&position, 1})});
  };
  EXPECT_EQ(Numbers((*run(0))[0]), (std::vector<double>{-1, 3}));
  EXPECT_EQ(ToString(run(2).status()),
            "OUT_OF_RANGE: operator \"RotaryEmbedding\": position 2 is not in [0, 2)");
}

TEST(NormOperators, RootMeanSquareOfOtherTypes) {
  const Tensor x = Tensor::FromDoubles({DType::kFloat16, {1, 2}}, std::vector<double>{3, 4});
  const Tensor scale = Floats({2}, {5, 10});
  const auto y = RunNode({.op_type = "SimplifiedLayerNormalization", .outputs = 2}, {x, scale});
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_EQ((*y)[0].type().ToString(), "f32[1,2]");
  EXPECT_NEAR((*y)[0].At(0), 3 * 5 / 3.5355339, 1e-5);
  EXPECT_NEAR((*y)[1].At(0), 1 / 3.5355339, 1e-5);
}

}  // namespace
}  // namespace ag
