// What ONNX's node tests leave out of samples, regions and losses.
#include <gtest/gtest.h>

#include <cmath>

#include "graph/onnx/operators/testing_node.h"

namespace ag {
namespace {

using Doubles = std::vector<double>;

TEST(Samples, NearestMovesElementsOfAnyType) {
  const int64_t big = (int64_t{1} << 60) + 1;
  const auto y = RunNode({.op_type = "GridSample", .opset = 20, .strings = {{"mode", "nearest"}}},
                         {I64({1, 1, 1, 2}, {big, 3}), F32({1, 1, 2, 2}, {-0.5, 0, 9, 0})});
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_EQ((*y)[0].As<int64_t>()[0], big);
  EXPECT_EQ((*y)[0].As<int64_t>()[1], 0);
}

TEST(Samples, PlacesThatAreNoNumbersAreOutside) {
  const Tensor x = F32({1, 1, 1, 2}, {5, 7});
  const Tensor grid = F32({1, 1, 3, 2}, {NAN, 0, INFINITY, 0, -INFINITY, 0});
  const std::vector<std::pair<std::string, Doubles>> cases = {{"zeros", {0, 0, 0}},
                                                              {"border", {5, 7, 5}}};
  for (const auto& [padding, expected] : cases) {
    const auto y =
        RunNode({.op_type = "GridSample", .strings = {{"padding_mode", padding}}}, {x, grid});
    ASSERT_TRUE(y.ok()) << ToString(y.status());
    EXPECT_EQ(Numbers((*y)[0]), expected) << padding;
  }
}

TEST(Samples, GridsMustFit) {
  const Tensor x = F32({1, 1, 1, 2}, {5, 7}), grid = F32({1, 1, 1, 3}, {0, 0, 0});
  EXPECT_EQ(CodeOf({.op_type = "GridSample"}, {x, grid}), StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf({.op_type = "GridSample", .strings = {{"mode", "area"}}}, {x, x}),
            StatusCode::kInvalidArgument);
  const Tensor many = Tensor::Zeros({DType::kFloat32, Shape(22, 1)});
  Shape shape(22, 1);
  shape.back() = 20;
  EXPECT_EQ(CodeOf({.op_type = "GridSample", .opset = 20},
                   {many, Tensor::Zeros({DType::kFloat32, shape})}),
            StatusCode::kUnimplemented);
}

TEST(Samples, AffineGridsWithoutElementsTakeNoMemory) {
  const Tensor theta = Tensor::Zeros({DType::kFloat32, {0, 2, 3}});
  const auto y = RunNode({.op_type = "AffineGrid", .opset = 20},
                         {theta, I64({4}, {0, 1, int64_t{1} << 19, int64_t{1} << 19})});
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_EQ((*y)[0].type().NumElements(), 0);
  EXPECT_EQ(CodeOf({.op_type = "AffineGrid", .opset = 20}, {theta, I64({4}, {0, 1, -1, 2})}),
            StatusCode::kInvalidArgument);
}

TEST(Regions, BadRegions) {
  const Tensor x = Tensor::Zeros({DType::kFloat32, {1, 1, 4, 4}});
  const Tensor region = F32({1, 4}, {0, 0, 3, 3}), far = F32({1, 4}, {0, 0, 1e30, 3});
  const Tensor wide = F32({1, 4}, {0, 0, 1e9, 1e9});
  const TestNode node = {.op_type = "RoiAlign"};
  EXPECT_EQ(CodeOf(node, {x, region, I64({1}, {1})}), StatusCode::kOutOfRange);
  EXPECT_EQ(CodeOf(node, {x, far, I64({1}, {0})}), StatusCode::kOutOfRange);
  EXPECT_EQ(CodeOf(node, {x, wide, I64({1}, {0})}), StatusCode::kResourceExhausted);
  EXPECT_EQ(CodeOf(node, {x, region, I64({2}, {0, 0})}), StatusCode::kInvalidArgument);
}

TEST(Regions, OfDoubles) {
  const Tensor x = OfType(DType::kFloat64, {1, 1, 2, 2}, {1, 2, 3, 4});
  const auto y = RunNode({.op_type = "RoiAlign", .opset = 10},
                         {x, OfType(DType::kFloat64, {1, 4}, {0, 0, 1, 1}), I64({1}, {0})});
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_EQ(Numbers((*y)[0]), Doubles{2.5});
}

TEST(Losses, LabelsAreClasses) {
  const Tensor x = F32({2, 2}, {-1, -2, -3, -4});
  const TestNode node = {.op_type = "NegativeLogLikelihoodLoss"};
  EXPECT_EQ(CodeOf(node, {x, I64({2}, {0, 2})}), StatusCode::kOutOfRange);
  EXPECT_EQ(CodeOf(node, {x, I64({1}, {0})}), StatusCode::kInvalidArgument);
  const auto y = RunNode({.op_type = "NegativeLogLikelihoodLoss", .ints = {{"ignore_index", 2}}},
                         {x, I64({2}, {0, 2})});
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_EQ(Numbers((*y)[0]), Doubles{1});
}

}  // namespace
}  // namespace ag
