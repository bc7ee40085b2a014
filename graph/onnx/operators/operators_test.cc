#include "graph/onnx/operators/operators.h"

#include <gtest/gtest.h>

namespace ag {
namespace {

OnnxNode NodeOf(std::string op_type, size_t inputs, size_t outputs) {
  OnnxNode node{.op_type = std::move(op_type)};
  node.inputs.assign(inputs, "x");
  node.outputs.assign(outputs, "y");
  return node;
}

OnnxAttribute IntOf(std::string name, int64_t value) {
  return {.name = std::move(name), .type = OnnxAttributeType::kInt, .i = value};
}

// One step of an RNN by hand: h = tanh(2 * 0.5 + 3 * 0.1 + 0.2).
TEST(Operators, RnnByHand) {
  OnnxNode node = NodeOf("RNN", 6, 2);
  node.inputs[4].clear();
  node.attributes.push_back(IntOf("hidden_size", 1));
  const Tensor x = Tensor::FromFloats({1, 1, 1}, std::vector<float>{2});
  const Tensor w = Tensor::FromFloats({1, 1, 1}, std::vector<float>{0.5});
  const Tensor r = Tensor::FromFloats({1, 1, 1}, std::vector<float>{3});
  const Tensor b = Tensor::FromFloats({1, 2}, std::vector<float>{0.15F, 0.05F});
  const Tensor h = Tensor::FromFloats({1, 1, 1}, std::vector<float>{0.1F});
  const auto results =
      RunOperator({.node = node, .opset = 14, .inputs = {&x, &w, &r, &b, nullptr, &h}});
  ASSERT_TRUE(results.ok()) << ToString(results.status());
  EXPECT_EQ((*results)[0].type().ToString(), "f32[1,1,1,1]");
  EXPECT_EQ((*results)[1].type().ToString(), "f32[1,1,1]");
  EXPECT_FLOAT_EQ((*results)[1].As<float>()[0], std::tanh(1.5F));
}

TEST(Operators, NamesWhatDoesNotFit) {
  OnnxNode node = NodeOf("LSTM", 3, 1);
  const Tensor x = Tensor::FromFloats({1, 1, 2}, std::vector<float>{1, 2});
  const Tensor w = Tensor::FromFloats({1, 4, 1}, std::vector<float>(4));
  const Tensor r = Tensor::FromFloats({1, 4, 1}, std::vector<float>(4));
  EXPECT_EQ(ToString(RunOperator({.node = node, .opset = 14, .inputs = {&x, &w, &r}}).status()),
            "INVALID_ARGUMENT: operator \"LSTM\": input 1: expected [1,4,2], got [1,4,1]");
  EXPECT_EQ(
      ToString(RunOperator({.node = node, .opset = 14, .inputs = {&x, nullptr, &r}}).status()),
      "INVALID_ARGUMENT: operator \"LSTM\": input 1 is missing");
  node.attributes.push_back(IntOf("surprise", 1));
  const Tensor fitting = Tensor::FromFloats({1, 4, 2}, std::vector<float>(8));
  EXPECT_EQ(
      ToString(RunOperator({.node = node, .opset = 14, .inputs = {&x, &fitting, &r}}).status()),
      "UNIMPLEMENTED: operator \"LSTM\": attribute \"surprise\" is not supported");
  node.op_type = "Nothing";
  EXPECT_EQ(ToString(RunOperator({.node = node, .opset = 14, .inputs = {&x}}).status()),
            "UNIMPLEMENTED: operator \"Nothing\": nothing here can run it");
}

TEST(Operators, RefusesResultsThatThereAreNot) {
  const OnnxNode node = NodeOf("TopK", 2, 3);
  const Tensor x = Tensor::FromFloats({3}, std::vector<float>{1, 3, 2});
  const Tensor k = Tensor::FromInts({1}, std::vector<int64_t>{2});
  EXPECT_EQ(ToString(RunOperator({.node = node, .opset = 17, .inputs = {&x, &k}}).status()),
            "UNIMPLEMENTED: operator \"TopK\": output 2 is not supported");
}

TEST(Operators, LimitsTheSizeOfAResult) {
  const OnnxNode node = NodeOf("RNN", 3, 1);
  const Tensor x = Tensor::FromFloats({4, 1, 1}, std::vector<float>(4));
  const Tensor w = Tensor::FromFloats({1, 1, 1}, std::vector<float>{1});
  const auto results =
      RunOperator({.node = node, .opset = 14, .inputs = {&x, &w, &w}, .bytes_max = 15});
  EXPECT_EQ(results.status().code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace ag
