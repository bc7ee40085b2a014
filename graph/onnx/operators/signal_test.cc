// What ONNX's node tests leave out of transforms and windows.
#include <gtest/gtest.h>

#include <cmath>

#include "graph/onnx/operators/testing_node.h"

namespace ag {
namespace {

Tensor Whole(int64_t value) { return Tensor::FromInts({}, {&value, 1}); }

// A transform and its inverse give the signal back, whatever the factors of the length.
TEST(SignalOperators, InverseOfTheTransformIsTheSignal) {
  for (const int64_t size : {1, 2, 7, 12, 30, 64, 97}) {
    for (const int64_t onesided : {0, 1}) {
      std::vector<double> values;
      for (int64_t i = 0; i < 2 * size; ++i) values.push_back(std::sin(static_cast<double>(i * i)));
      const Tensor x = Tensor::FromDoubles({DType::kFloat64, {2, size, 1}}, values);
      TestNode node{.op_type = "DFT", .opset = 20, .ints = {{"onesided", onesided}}};
      const auto there = RunNode(node, {x, Whole(size)});
      ASSERT_TRUE(there.ok()) << ToString(there.status());
      node.ints.emplace_back("inverse", 1);
      const auto back = RunNode(node, {(*there)[0], Whole(size)});
      ASSERT_TRUE(back.ok()) << ToString(back.status());
      const int64_t parts = onesided != 0 ? 1 : 2;
      ASSERT_EQ((*back)[0].type().ToString(), fmt::format("f64[2,{},{}]", size, parts));
      for (int64_t i = 0; i < 2 * size; ++i) {
        EXPECT_NEAR((*back)[0].At(i * parts), values[static_cast<size_t>(i)], 1e-12) << size;
      }
    }
  }
}

TEST(SignalOperators, LengthCutsOrExtends) {
  const Tensor x = Tensor::FromFloats({1, 3, 1}, std::vector<float>{1, 2, 3});
  const TestNode node{.op_type = "DFT", .opset = 17};
  const auto cut = RunNode(node, {x, Whole(2)});
  ASSERT_TRUE(cut.ok()) << ToString(cut.status());
  EXPECT_EQ(Numbers((*cut)[0]), (std::vector<double>{3, 0, -1, 0}));
  const auto longer = RunNode(node, {x, Whole(4)});
  ASSERT_TRUE(longer.ok()) << ToString(longer.status());
  EXPECT_EQ(Numbers((*longer)[0]), (std::vector<double>{6, 0, -2, -2, 2, 0, -2, 2}));
}

// A real signal may lack the last axis, as PyTorch exports it.
TEST(SignalOperators, StftOfRank2) {
  const Tensor x = Tensor::FromFloats({1, 5}, std::vector<float>{1, 2, 3, 4, 5});
  const Tensor window = Tensor::FromFloats({2}, std::vector<float>{1, 2});
  const auto y = RunNode({.op_type = "STFT"}, {x, Whole(3), window});
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_EQ((*y)[0].type().ToString(), "f32[1,2,2,2]");
  EXPECT_EQ(Numbers((*y)[0]), (std::vector<double>{5, 0, -3, 0, 14, 0, -6, 0}));
}

TEST(SignalOperators, WindowsOfOtherTypes) {
  const TestNode node{.op_type = "HannWindow", .ints = {{"output_datatype", 10}}};  // FLOAT16
  const auto y = RunNode(node, {Whole(4)});
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_EQ((*y)[0].type().ToString(), "f16[4]");
  EXPECT_EQ(Numbers((*y)[0]), (std::vector<double>{0, 0.5, 1, 0.5}));
  const TestNode symmetric{.op_type = "HannWindow", .ints = {{"periodic", 0}}};
  EXPECT_EQ(Numbers((*RunNode(symmetric, {Whole(1)}))[0]), std::vector<double>{1});
  EXPECT_EQ(Numbers((*RunNode(symmetric, {Whole(0)}))[0]), std::vector<double>{});
}

TEST(SignalOperators, SayWhatDoesNotFit) {
  const Tensor x = Tensor::FromFloats({1, 3, 1}, std::vector<float>{1, 2, 3});
  struct Case {
    std::string op_type;
    std::vector<Tensor> inputs;
    std::string expected;
  };
  for (const Case& c : {
           Case{"DFT", {x, Whole(0)}, "INVALID_ARGUMENT: operator \"DFT\": a transform of 0 "},
           Case{"DFT",
                {x, Whole(kElementsMax)},
                "RESOURCE_EXHAUSTED: operator \"DFT\": a transform of 1099511627776 elements"},
           Case{"DFT",
                {x, Whole(99'999'989)},
                "RESOURCE_EXHAUSTED: operator \"DFT\": a transform of 99999989 elements"},
           Case{"DFT",
                {x, Whole(9'999'991)},
                "RESOURCE_EXHAUSTED: operator \"DFT\": 99999820000081 products are more than"},
           Case{"STFT",
                {x, Whole(0)},
                "INVALID_ARGUMENT: operator \"STFT\": frames of 3, a step of 0, a signal of 3"},
           Case{"STFT",
                {x, Whole(1), Tensor::Zeros({DType::kFloat32, {4}})},
                "INVALID_ARGUMENT: operator \"STFT\": frames of 4, a step of 1, a signal of 3"},
           Case{"HannWindow",
                {Whole(-1)},
                "INVALID_ARGUMENT: operator \"HannWindow\": a window of -1 elements"},
       }) {
    const std::string message = ToString(RunNode({.op_type = c.op_type}, c.inputs).status());
    EXPECT_EQ(message.substr(0, c.expected.size()), c.expected);
  }
}

}  // namespace
}  // namespace ag
