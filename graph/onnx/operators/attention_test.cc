// What ONNX's node tests leave out of attention, rotary positions and operators with a state.
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

// Two calls with the state between them give what one call gives.
TEST(StatefulOperators, ACausalConvolutionGoesOn) {
  const TestNode node{.op_type = "CausalConvWithState", .opset = 27, .outputs = 2};
  const Tensor w = Floats({1, 1, 3}, {1, 10, 100}), bias = Floats({1}, {0.5});
  const auto whole = RunNode(node, {Floats({1, 1, 3}, {1, 2, 3}), w, bias});
  ASSERT_TRUE(whole.ok()) << ToString(whole.status());
  EXPECT_EQ(Numbers((*whole)[0]), (std::vector<double>{100.5, 210.5, 321.5}));
  EXPECT_EQ(Numbers((*whole)[1]), (std::vector<double>{2, 3}));
  const auto first = RunNode(node, {Floats({1, 1, 1}, {1}), w, bias});
  ASSERT_TRUE(first.ok()) << ToString(first.status());
  EXPECT_EQ(Numbers((*first)[1]), (std::vector<double>{0, 1}));
  const auto second = RunNode(node, {Floats({1, 1, 2}, {2, 3}), w, bias, (*first)[1]});
  ASSERT_TRUE(second.ok()) << ToString(second.status());
  EXPECT_EQ(Numbers((*second)[0]), (std::vector<double>{210.5, 321.5}));
  EXPECT_EQ(Numbers((*second)[1]), (std::vector<double>{2, 3}));
}

TEST(StatefulOperators, ACausalConvolutionSaysWhatDoesNotFit) {
  TestNode node{.op_type = "CausalConvWithState", .opset = 27, .outputs = 2};
  const Tensor x = Floats({1, 1, 2}, {1, 2}), w = Floats({1, 1, 2}, {1, 1});
  EXPECT_EQ(ToString(RunNode(node, {x, Floats({2, 1, 1}, {1, 1})}).status()),
            "INVALID_ARGUMENT: operator \"CausalConvWithState\": input 1: expected [1,1,1], got "
            "[2,1,1]");
  EXPECT_EQ(ToString(RunNode(node, {x, w, Tensor(), Floats({1, 1, 2}, {1, 1})}).status()),
            "INVALID_ARGUMENT: operator \"CausalConvWithState\": input 3: expected [1,1,1], got "
            "[1,1,2]");
  node.strings = {{"activation", "relu"}};
  EXPECT_EQ(ToString(RunNode(node, {x, w}).status()),
            "INVALID_ARGUMENT: operator \"CausalConvWithState\": activation \"relu\" is not known");
}

// One head of one element: the state is a number s; a step makes it e^g s + b k (v - e^g s k).
TEST(StatefulOperators, RulesOfLinearAttention) {
  const Tensor q = Floats({1, 2, 1}, {1, 2}), k = Floats({1, 2, 1}, {3, 1}),
               v = Floats({1, 2, 1}, {5, 7}), past = Floats({1, 1, 1, 1}, {2}),
               decay = Floats({1, 2, 1}, {0, 0}), beta = Floats({1, 2, 1}, {1, 0.5});
  const struct {
    const char* rule;
    std::vector<double> y;
    double state;
  } kCases[] = {
      {"linear", {17, 48}, 24},  // 2 + 15, + 7
      {"gated", {17, 48}, 24},
      {"delta", {-1, 6}, 3},  // 2 + 3 (5 - 6), + 0.5 (7 + 1)
      {"gated_delta", {-1, 6}, 3},
  };
  for (const auto& c : kCases) {
    const TestNode node{.op_type = "LinearAttention",
                        .opset = 27,
                        .outputs = 2,
                        .ints = {{"q_num_heads", 1}, {"kv_num_heads", 1}},
                        .strings = {{"update_rule", c.rule}}};
    const auto y = RunNode(node, {q, k, v, past, decay, beta});
    ASSERT_TRUE(y.ok()) << ToString(y.status());
    EXPECT_EQ(Numbers((*y)[0]), c.y) << c.rule;
    EXPECT_EQ(Numbers((*y)[1]), std::vector<double>{c.state}) << c.rule;
  }
}

TEST(StatefulOperators, LinearAttentionSaysWhatDoesNotFit) {
  TestNode node{.op_type = "LinearAttention",
                .opset = 27,
                .outputs = 2,
                .ints = {{"q_num_heads", 1}, {"kv_num_heads", 1}}};
  const Tensor q = Floats({1, 1, 2}, {1, 2}), v = Floats({1, 1, 1}, {1});
  EXPECT_EQ(ToString(RunNode(node, {q, q, v}).status()),
            "INVALID_ARGUMENT: operator \"LinearAttention\": update_rule \"gated_delta\" needs "
            "decay");
  EXPECT_EQ(ToString(RunNode(node, {q, v, v}).status()),
            "INVALID_ARGUMENT: operator \"LinearAttention\": queries [1,1,1,2], keys [1,1,1,1] and "
            "values [1,1,1,1] do not fit");
  EXPECT_EQ(ToString(RunNode(node, {q, q, v, Tensor(), Floats({1, 1, 3}, {1, 1, 1}), v}).status()),
            "INVALID_ARGUMENT: operator \"LinearAttention\": input 4: f32[1,1,3] does not go with "
            "keys [1,1,1,2]");
  node.strings = {{"update_rule", "other"}};
  EXPECT_EQ(ToString(RunNode(node, {q, q, v}).status()),
            "INVALID_ARGUMENT: operator \"LinearAttention\": update_rule \"other\" is not known");
}

}  // namespace
}  // namespace ag
