// Operators of domain com.microsoft: those that ONNX Runtime has not on the CPU, and bad input.
#include <gtest/gtest.h>

#include <cmath>

#include "graph/onnx/operators/testing_node.h"

namespace ag {
namespace {

Tensor Reals(Shape shape, const std::vector<float>& values) {
  return Tensor::FromFloats(std::move(shape), values);
}
Tensor Bytes(Shape shape, const std::vector<double>& values) {
  return Tensor::FromDoubles({DType::kUInt8, std::move(shape)}, values);
}
Tensor Ones(Shape shape) {
  const std::vector<double> ones(static_cast<size_t>(NumElements(shape)), 1);
  return Tensor::FromDoubles({DType::kFloat32, std::move(shape)}, ones);
}

std::string Problem(TestNode node, const std::vector<Tensor>& inputs) {
  node.op_type = "com.microsoft." + node.op_type;
  return ToString(RunNode(node, inputs).status());
}

TEST(MicrosoftOperators, GroupsOfChannelsInBothLayouts) {
  const Tensor gamma = Reals({2}, {1, 10}), beta = Reals({2}, {0, 1});
  TestNode node{.op_type = "com.microsoft.GroupNorm",
                .opset = 1,
                .ints = {{"groups", 2}, {"activation", 0}},
                .floats = {{"epsilon", 0}}};
  const auto last = RunNode(node, {Reals({1, 1, 2, 2}, {1, 5, 3, 9}), gamma, beta});
  ASSERT_TRUE(last.ok()) << ToString(last.status());
  EXPECT_EQ(Numbers((*last)[0]), (std::vector<double>{-1, -9, 1, 11}));
  node.ints = {{"groups", 2}, {"activation", 0}, {"channels_last", 0}};
  const auto first = RunNode(node, {Reals({1, 2, 1, 2}, {1, 3, 5, 9}), gamma, beta});
  ASSERT_TRUE(first.ok()) << ToString(first.status());
  EXPECT_EQ(Numbers((*first)[0]), (std::vector<double>{-1, 1, -9, 11}));
  node.ints[1].second = 1;
  EXPECT_NEAR((*RunNode(node, {Reals({1, 2, 1, 2}, {1, 3, 5, 9}), gamma, beta}))[0].At(1),
              1 / (1 + std::exp(-1)), 1e-6);
}

TEST(MicrosoftOperators, BiasSplitGeluAndBiasSoftmax) {
  const auto split = RunNode({.op_type = "com.microsoft.BiasSplitGelu", .opset = 1},
                             {Reals({1, 1, 4}, {1, 2, 0, 30}), Reals({4}, {1, 1, 0, 10})});
  ASSERT_TRUE(split.ok()) << ToString(split.status());
  EXPECT_EQ(Numbers((*split)[0]), (std::vector<double>{0, 120}));
  const TestNode softmax{.op_type = "com.microsoft.BiasSoftmax", .opset = 1, .ints = {{"axis", 1}}};
  const auto shares = RunNode(softmax, {Reals({2, 2}, {1, 2, 3, 4}), Reals({2}, {1, 0})});
  ASSERT_TRUE(shares.ok()) << ToString(shares.status());
  EXPECT_EQ(Numbers((*shares)[0]), (std::vector<double>{0.5, 0.5, 0.5, 0.5}));
}

TEST(MicrosoftOperators, AMatrixWithoutInverseGivesNan) {
  const auto y = RunNode({.op_type = "com.microsoft.Inverse", .opset = 1},
                         {Tensor::Zeros({DType::kFloat32, {1, 2, 2}})});
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_TRUE(std::isnan((*y)[0].At(0)));
}

// Bits of one number may lie in two bytes.
TEST(MicrosoftOperators, WeightsOfThreeBits) {
  std::vector<double> packed(6);  // Numbers 0, 1, ..., 15 modulo 8.
  for (int i = 0; i < 48; ++i) {
    const int bit = (i / 3 % 8) >> (i % 3) & 1;
    packed[static_cast<size_t>(i / 8)] += bit << (i % 8);
  }
  const TestNode node{.op_type = "com.microsoft.MatMulNBits",
                      .opset = 1,
                      .ints = {{"K", 16}, {"N", 1}, {"bits", 3}, {"block_size", 16}}};
  for (size_t i = 0; i < 16; ++i) {
    std::vector<float> unit(16);
    unit[i] = 1;
    const auto y =
        RunNode(node, {Reals({1, 16}, unit), Bytes({1, 1, 6}, packed), Reals({1, 1}, {2})});
    ASSERT_TRUE(y.ok()) << ToString(y.status());
    EXPECT_EQ((*y)[0].At(0), 2 * (static_cast<double>(i % 8) - 4));
  }
}

// A missing projection gives the bias.
TEST(MicrosoftOperators, WeightsWithoutElementsAreZeros) {
  const TestNode node{.op_type = "com.microsoft.MatMulNBits",
                      .opset = 1,
                      .ints = {{"K", 16}, {"N", 2}, {"block_size", 16}}};
  const Tensor none = Tensor::Zeros({DType::kFloat32, {0}});
  const auto y = RunNode(
      node, {Ones({1, 16}), Bytes({2, 1, 0}, {}), none, Tensor(), Tensor(), Reals({2}, {3, 4})});
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_EQ(Numbers((*y)[0]), (std::vector<double>{3, 4}));
}

// ONNX Runtime packs keys and values only on other devices.
TEST(MicrosoftOperators, PackedKeysAndValues) {
  const TestNode node{
      .op_type = "com.microsoft.MultiHeadAttention", .opset = 1, .ints = {{"num_heads", 2}}};
  const Tensor packed = Reals({1, 2, 2, 2, 1}, {0, 1, 0, 2, 0, 3, 0, 4});
  const auto y = RunNode(node, {Tensor::Zeros({DType::kFloat32, {1, 1, 2}}), packed});
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_EQ(Numbers((*y)[0]), (std::vector<double>{2, 3}));
}

TEST(MicrosoftOperators, MaskOfTheSquareOfPlaces) {
  const TestNode node{.op_type = "com.microsoft.Attention", .opset = 1, .ints = {{"num_heads", 1}}};
  std::vector<int64_t> flags(16);
  flags[1] = flags[4] = 1;  // Of 4 places the first 2 are used: each attends the other one.
  const Tensor mask = Tensor::FromInts({1, 1, 4, 4}, flags);
  const Tensor weights = Reals({1, 3}, {0, 0, 1});
  const auto y = RunNode(node, {Reals({1, 2, 1}, {3, 5}), weights, Tensor(), mask});
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_EQ(Numbers((*y)[0]), (std::vector<double>{5, 3}));
}

// The second batch item has one token in the cache, the first one two; a sink takes half of a
// share.
TEST(MicrosoftOperators, GroupsOfQueriesAfterTheirOwnPast) {
  TestNode node{.op_type = "com.microsoft.GroupQueryAttention",
                .opset = 1,
                .outputs = 3,
                .ints = {{"num_heads", 2}, {"kv_num_heads", 1}}};
  const Tensor zeros = Tensor::Zeros({DType::kFloat32, {2, 1, 2}});
  const Tensor now = Reals({2, 1, 1}, {6, 7}), past = Reals({2, 1, 2, 1}, {1, 2, 3, 4});
  const std::vector<int64_t> last = {2, 1}, far = {2, 3}, most = {3};
  std::vector<Tensor> inputs = {
      zeros, now, now, past, past, Tensor::FromInts({2}, last), Tensor::FromInts({}, most)};
  const auto y = RunNode(node, inputs);
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_EQ(Numbers((*y)[0]), (std::vector<double>{3, 3, 5, 5}));
  EXPECT_EQ(Numbers((*y)[2]), (std::vector<double>{1, 2, 6, 3, 7, 0}));
  node.ints.emplace_back("local_window_size", 1);
  node.ints.emplace_back("smooth_softmax", 1);
  EXPECT_EQ(Numbers((*RunNode(node, inputs))[0]), (std::vector<double>{3, 3, 3.5, 3.5}));
  inputs[5] = Tensor::FromInts({2}, far);
  EXPECT_EQ(ToString(RunNode(node, inputs).status()),
            "OUT_OF_RANGE: operator \"com.microsoft.GroupQueryAttention\": input 5: the last of 1 "
            "new tokens is at 3, 3 in all");
}

TEST(MicrosoftOperators, SayWhatDoesNotFit) {
  const Tensor x = Ones({1, 2, 4});
  EXPECT_EQ(Problem({.op_type = "BiasGelu"}, {x, Ones({3})}),
            "INVALID_ARGUMENT: operator \"com.microsoft.BiasGelu\": input 1: f32[3] does not "
            "broadcast to [1,2,4]");
  EXPECT_EQ(Problem({.op_type = "FusedGemm", .strings = {{"activation", "Wave"}}},
                    {Ones({2, 2}), Ones({2, 2})}),
            "INVALID_ARGUMENT: operator \"com.microsoft.FusedGemm\": no activation function is "
            "named \"wave\"");
  EXPECT_EQ(Problem({.op_type = "Attention", .ints = {{"num_heads", 3}}}, {x, Ones({4, 12})}),
            "INVALID_ARGUMENT: operator \"com.microsoft.Attention\": 3 heads: weights of 12 "
            "columns do not split");
  EXPECT_EQ(Problem({.op_type = "MatMulNBits",
                     .ints = {{"K", 4}, {"N", int64_t{1} << 30}, {"block_size", int64_t{1} << 30}}},
                    {x, Bytes({1}, {0}), Ones({1})}),
            "INVALID_ARGUMENT: operator \"com.microsoft.MatMulNBits\": input 1: expected "
            "576460752303423488 elements, got u8[1]");
  EXPECT_EQ(Problem({.op_type = "QLinearAdd"}, {x, x}),
            "INVALID_ARGUMENT: operator \"com.microsoft.QLinearAdd\": input 3 is missing");
  const int64_t far = 7;
  const Tensor id = Tensor::FromInts({1, 1}, {&far, 1}), table = Ones({2, 4}), row = Ones({4});
  EXPECT_EQ(Problem({.op_type = "EmbedLayerNormalization"},
                    {id, Tensor(), table, table, Tensor(), row, row}),
            "OUT_OF_RANGE: operator \"com.microsoft.EmbedLayerNormalization\": input 2: row 7 of "
            "2");
}

TEST(MicrosoftOperators, OperandsWithoutElementsTakeNoMemory) {
  const Tensor left = Tensor::Zeros({DType::kFloat32, {1 << 20, 0}});
  const Tensor right = Tensor::Zeros({DType::kFloat32, {0, 1 << 20}});
  for (const std::string name : {"FusedMatMul", "FusedGemm"}) {
    const TestNode node{.op_type = "com.microsoft." + name, .opset = 1};
    EXPECT_EQ(RunNode(node, {left, right}).status().code(), StatusCode::kResourceExhausted);
  }
  const Tensor rows = Tensor::Zeros({DType::kFloat32, {int64_t{1} << 39, 0}});
  const TestNode skip{.op_type = "com.microsoft.SkipLayerNormalization", .opset = 1, .outputs = 2};
  EXPECT_EQ(RunNode(skip, {rows, rows, Ones({0})}).status().code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace ag
