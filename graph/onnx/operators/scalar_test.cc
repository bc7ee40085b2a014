// What ONNX's node tests leave out of element-wise operators and reductions.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "graph/onnx/operators/testing_node.h"

namespace ag {
namespace {

constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();
constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();

// Integers wrap around and keep all 64 bits.
TEST(ScalarOperators, LongsAreExact) {
  struct Case {
    std::string op_type;
    int64_t a, b, expected;
    int64_t fmod = 0;
  };
  for (const Case& c : {
           Case{"Add", kHighest, 1, kLowest},
           Case{"Sub", kLowest, 1, kHighest},
           Case{"Mul", 3037000501, 3037000501, -9223372030635300615},
           Case{"Div", kLowest, -1, kLowest},
           Case{"Div", -7, 2, -3},
           Case{"Div", 7, 0, 0},
           Case{"Div", 7, kHighest, 0},
           Case{"Mod", 7, kHighest, 7},
           Case{"Mod", -7, 3, 2},
           Case{"Mod", 7, -3, -2},
           Case{"Mod", kLowest, -1, 0},
           Case{"Mod", -7, 3, -1, 1},
           Case{"Pow", 3, 39, 4052555153018976267},
           Case{"Pow", -1, -3, -1},
           Case{"Pow", 2, -1, 0},
           Case{"Max", kHighest, kHighest - 1, kHighest},
       }) {
    TestNode node{.op_type = c.op_type};
    if (c.op_type == "Mod") node.ints = {{"fmod", c.fmod}};
    const auto y =
        RunNode(node, {Tensor::FromInts({}, {&c.a, 1}), Tensor::FromInts({}, {&c.b, 1})});
    ASSERT_TRUE(y.ok()) << c.op_type << ToString(y.status());
    EXPECT_EQ((*y)[0].As<int64_t>()[0], c.expected) << c.op_type << " " << c.a << " " << c.b;
  }
}

TEST(ScalarOperators, BytesWrapAround) {
  const std::vector<double> values = {200, 100};
  const Tensor x = Tensor::FromDoubles({DType::kUInt8, {2}}, values);
  const auto y = RunNode({.op_type = "Add"}, {x, x});
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_EQ(Numbers((*y)[0]), (std::vector<double>{144, 200}));
}

// Types of 8-bit floats have casts only.
TEST(ScalarOperators, TypesWithoutArithmetic) {
  for (const DType dtype : {DType::kFloat8E4M3, DType::kFloat8E5M2}) {
    const Tensor x = Tensor::Zeros({dtype, {2}});
    for (const auto& y : {RunNode({.op_type = "Add"}, {x, x}), RunNode({.op_type = "Abs"}, {x}),
                          RunNode({.op_type = "Pow"}, {Tensor::Zeros({DType::kFloat32, {2}}), x}),
                          RunNode({.op_type = "ReduceL2", .opset = 18}, {x}),
                          RunNode({.op_type = "ReduceLogSum", .opset = 18}, {x}),
                          RunNode({.op_type = "ReduceLogSumExp", .opset = 18}, {x})}) {
      EXPECT_EQ(y.status().code(), StatusCode::kUnimplemented) << ToString(y.status());
    }
  }
}

TEST(ScalarOperators, ShiftsToTheRightRepeatTheSign) {
  const auto shifted = [](DType dtype, const char* direction, double a, double b) {
    const auto y =
        RunNode({.op_type = "BitShift", .opset = 28, .strings = {{"direction", direction}}},
                {OfType(dtype, {1}, {a}), OfType(dtype, {1}, {b})});
    return y.ok() ? (*y)[0].At(0) : NAN;
  };
  EXPECT_EQ(shifted(DType::kInt8, "RIGHT", -128, 3), -16);
  EXPECT_EQ(shifted(DType::kInt8, "RIGHT", -5, 8), -1);
  EXPECT_EQ(shifted(DType::kInt8, "RIGHT", 5, -1), 0);
  EXPECT_EQ(shifted(DType::kInt8, "LEFT", 65, 1), -126);
  EXPECT_EQ(shifted(DType::kInt32, "LEFT", -1, 32), 0);
  EXPECT_EQ(shifted(DType::kUInt8, "RIGHT", 128, 3), 16);
}

TEST(ScalarOperators, BitsMoveToTypesOfTheSameSize) {
  const auto cast = [](int64_t to, const Tensor& x) {
    return RunNode({.op_type = "BitCast", .opset = 26, .ints = {{"to", to}}}, {x});
  };
  const auto bits = cast(6, F32({2}, {1, -0.0}));
  ASSERT_TRUE(bits.ok()) << ToString(bits.status());
  EXPECT_EQ(Numbers((*bits)[0]), (std::vector<double>{0x3F800000, -2147483648.0}));
  EXPECT_EQ(cast(7, F32({1}, {1})).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(cast(22, OfType(DType::kInt8, {1}, {1})).status().code(), StatusCode::kUnimplemented);
}

TEST(ScalarOperators, CastsCutBitsOfIntegersAndSaturateNumbers) {
  TestNode node{.op_type = "Cast"};
  node.ints = {{"to", 3}};  // INT8
  auto y = RunNode(node, {Tensor::FromInts({2}, std::vector<int64_t>{200, -129})});
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_EQ(Numbers((*y)[0]), (std::vector<double>{-56, 127}));
  y = RunNode(node, {Tensor::FromFloats({3}, std::vector<float>{300.5F, -1.5F, NAN})});
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_EQ(Numbers((*y)[0]), (std::vector<double>{127, -1, 0}));
}

TEST(ScalarOperators, MaxKeepsNan) {
  const Tensor x = Tensor::FromFloats({2}, std::vector<float>{NAN, 1});
  const Tensor y = Tensor::FromFloats({2}, std::vector<float>{1, NAN});
  const auto max = RunNode({.op_type = "Max"}, {x, y});
  ASSERT_TRUE(max.ok()) << ToString(max.status());
  EXPECT_TRUE(std::isnan((*max)[0].At(0)) && std::isnan((*max)[0].At(1)));
}

TEST(ScalarOperators, SayWhatDoesNotFit) {
  const Tensor flag = Tensor::Zeros({DType::kBool, {1}});
  const Tensor x = Tensor::FromFloats({2}, std::vector<float>{1, 2});
  EXPECT_EQ(ToString(RunNode({.op_type = "Add"}, {flag, flag}).status()),
            "INVALID_ARGUMENT: operator \"Add\": expected numbers, got bool[1]");
  EXPECT_EQ(ToString(RunNode({.op_type = "Add"}, {x, flag}).status()),
            "INVALID_ARGUMENT: operator \"Add\": input 1: expected f32, got bool[1]");
  EXPECT_EQ(ToString(RunNode({.op_type = "BitwiseNot"}, {x}).status()),
            "UNIMPLEMENTED: operator \"BitwiseNot\": elements of f32 are not supported");
}

TEST(ReduceOperators, EmptySetsGiveTheNeutralElement) {
  struct Case {
    std::string op_type;
    double expected;
  };
  const double infinity = std::numeric_limits<double>::infinity();
  for (const Case& c : {Case{"ReduceSum", 0}, Case{"ReduceProd", 1}, Case{"ReduceMax", -infinity},
                        Case{"ReduceMin", infinity}, Case{"ReduceLogSum", -infinity},
                        Case{"ReduceLogSumExp", -infinity}, Case{"ReduceL2", 0}}) {
    TestNode node{.op_type = c.op_type};
    node.ints = {{"keepdims", 0}};
    const auto y = RunNode(node, {Tensor::Zeros({DType::kFloat32, {0}})});
    ASSERT_TRUE(y.ok()) << c.op_type << ToString(y.status());
    EXPECT_EQ(Numbers((*y)[0]), std::vector<double>{c.expected}) << c.op_type;
  }
}

// Without axes nothing is reduced, but the rest of the operator is done.
TEST(ReduceOperators, NoAxes) {
  TestNode node{.op_type = "ReduceSumSquare", .opset = 18};
  node.ints = {{"noop_with_empty_axes", 1}};
  const auto y = RunNode(node, {Tensor::FromInts({2}, std::vector<int64_t>{3, -4})});
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_EQ(Numbers((*y)[0]), (std::vector<double>{9, 16}));
}

TEST(ReduceOperators, LogSumExpOfLargeNumbersAndInfinities) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> values = {1000, 1000, infinity, 3, -infinity, -infinity};
  TestNode node{.op_type = "ReduceLogSumExp", .opset = 18};
  node.ints = {{"keepdims", 0}};
  const auto y = RunNode(node, {Tensor::FromDoubles({DType::kFloat64, {3, 2}}, values),
                                Tensor::FromInts({1}, std::vector<int64_t>{1})});
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_DOUBLE_EQ((*y)[0].At(0), 1000 + std::log(2));
  EXPECT_EQ((*y)[0].At(1), infinity);
  EXPECT_EQ((*y)[0].At(2), -infinity);
}

TEST(ReduceOperators, ArgMaxOfNothing) {
  EXPECT_EQ(
      ToString(RunNode({.op_type = "ArgMax"}, {Tensor::Zeros({DType::kFloat32, {0, 2}})}).status()),
      "INVALID_ARGUMENT: operator \"ArgMax\": axis 0 of f32[0,2] is empty");
}

}  // namespace
}  // namespace ag
