// What ONNX's node tests leave out of Resize.
#include <gtest/gtest.h>

#include <cmath>

#include "graph/onnx/operators/testing_node.h"

namespace ag {
namespace {

TEST(Resamples, IntegersAreCutOffOrRounded) {
  const Tensor x = OfType(DType::kUInt8, {4}, {0, 10, 101, 7}), none = F32({0}, {});
  struct Case {
    int64_t antialias;
    double scale;
    std::vector<double> expected;
  };
  for (const Case& c : {Case{0, 1.7, {0, 3, 9, 60, 87, 31}}, Case{1, 0.6, {4, 60}}}) {
    const auto y = RunNode({.op_type = "Resize",
                            .opset = 18,
                            .ints = {{"antialias", c.antialias}},
                            .strings = {{"mode", "linear"}}},
                           {x, none, F32({1}, {c.scale})});
    ASSERT_TRUE(y.ok()) << ToString(y.status());
    EXPECT_EQ((*y)[0].type().dtype, DType::kUInt8);
    EXPECT_EQ(Numbers((*y)[0]), c.expected);
  }
}

TEST(Resamples, BadSizes) {
  const Tensor x = F32({2, 2}, {1, 2, 3, 4}), none = F32({0}, {});
  const auto code = [&](const Tensor& scales) {
    return CodeOf({.op_type = "Resize", .opset = 13}, {x, none, scales});
  };
  EXPECT_EQ(code(F32({2}, {1, 0})), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(F32({2}, {1, NAN})), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(F32({1}, {1})), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(none), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(F32({2}, {1e20, 1e20})), StatusCode::kInvalidArgument);
  EXPECT_EQ(
      CodeOf({.op_type = "Resize", .opset = 13}, {F32({0, 2}, {}), none, none, I64({2}, {3, 2})}),
      StatusCode::kInvalidArgument);
}

TEST(Resamples, CropsOutsideTakeTheExtrapolationValue) {
  const auto y = RunNode(
      {.op_type = "Resize",
       .opset = 13,
       .strings = {{"coordinate_transformation_mode", "tf_crop_and_resize"}, {"mode", "linear"}}},
      {F32({2}, {1, 3}), F32({2}, {0.5, NAN}), F32({0}, {}), I64({1}, {2})});
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_EQ(Numbers((*y)[0]), (std::vector<double>{0, 0}));
}

}  // namespace
}  // namespace ag
