#include "plan/equivalence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "graph/text_form.h"

namespace ag {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

struct Case {
  const char* name;
  std::vector<float> expected, actual;
  double max_abs, max_rel;
  bool nonfinite_differs;
};

TEST(Equivalence, Compare) {
  const Case cases[] = {
      {"equal", {1, -2, 3}, {1, -2, 3}, 0, 0, false},
      {"relative to the largest", {1, -4}, {1.5, -4}, 0.5, 0.125, false},
      {"all zeros expected", {0, 0}, {0, 1}, 1, 1, false},
      {"nan at the same place", {1, kNan}, {1, kNan}, 0, 0, false},
      {"nan at another place", {1, kNan}, {kNan, 1}, 0, 0, true},
      {"inf of the other sign", {kInf, 1}, {-kInf, 1}, 0, 0, true},
      {"inf for a number", {2, 1}, {kInf, 1}, 0, 0, true},
  };
  for (const Case& c : cases) {
    const Shape shape = {static_cast<int64_t>(c.expected.size())};
    const OutputError error = CompareTensors("y", Tensor::FromFloats(shape, c.expected),
                                             Tensor::FromFloats(shape, c.actual));
    EXPECT_DOUBLE_EQ(error.max_abs, c.max_abs) << c.name;
    EXPECT_DOUBLE_EQ(error.max_rel, c.max_rel) << c.name;
    EXPECT_EQ(error.nonfinite_differs, c.nonfinite_differs) << c.name;
  }
}

TEST(Equivalence, IntegersMustBeEqual) {
  const std::vector<int64_t> a = {1000, 2}, b = {1001, 2};
  const OutputError error = CompareTensors("y", Tensor::FromInts({2}, a), Tensor::FromInts({2}, b));
  EXPECT_EQ(error.max_rel, 1);
  EXPECT_FALSE(IsEquivalent(error, 1e-3));
}

TEST(Equivalence, ShapesMustBeEqual) {
  const std::vector<float> v = {1, 2};
  const OutputError error =
      CompareTensors("y", Tensor::FromFloats({2}, v), Tensor::FromFloats({1, 2}, v));
  EXPECT_TRUE(error.nonfinite_differs);
}

// A softmax over many classes is nearly flat; an error in one small logit is visible only in the
// logarithm.
TEST(Equivalence, SoftmaxOutputsAreComparedByLogarithmToo) {
  const auto graph = ParseGraph("input x f32[1,2]\noutput \"y\" = softmax(x) axis=1\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const std::vector<float> a = {0.9999f, 0.0001f}, b = {0.9998f, 0.0002f};
  const OutputError error =
      CompareOutput(*graph, 0, Tensor::FromFloats({1, 2}, a), Tensor::FromFloats({1, 2}, b));
  EXPECT_NEAR(error.max_rel, std::log(2.0) / std::log(10000.0), 1e-4);
  EXPECT_FALSE(IsEquivalent(error, 1e-3));
}

}  // namespace
}  // namespace ag
