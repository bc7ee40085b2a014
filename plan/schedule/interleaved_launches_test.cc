#include "plan/schedule/interleaved_launches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/testing/schedule_scene.h"
#include "plan/testing/testing.h"

namespace ag {
namespace {

using testing::ElementsAre;

// Relu is the first to follow Exp, and Add the first to follow Relu.
TEST(InterleavedLaunches, TheFirstFollowerStaysOnTheStream) {
  const ScheduleScene scene("input x f32[4]\na = exp(x)\noutput y = add(relu(a), neg(a))\n",
                            SmallSpec());
  const auto streams =
      InterleavedLaunches(scene.Problem({{"Exp", 100}, {"Relu", 50}, {"Neg", 80}, {"Add", 10}}, 4));
  EXPECT_THAT(scene.Text(streams), ElementsAre("Exp Relu Add<Neg", "Neg<Exp"));
}

TEST(InterleavedLaunches, WithoutAFreeStreamTheOneWithTheLeastWorkIsTaken) {
  const ScheduleScene scene(
      "input x f32[4]\noutput a = exp(x)\noutput b = relu(x)\noutput c = neg(x)\n", SmallSpec());
  const auto streams =
      InterleavedLaunches(scene.Problem({{"Exp", 100}, {"Relu", 50}, {"Neg", 80}}, 2));
  EXPECT_THAT(scene.Text(streams), ElementsAre("Exp", "Relu Neg"));
}

// A product of 64 x 64 matrices has 524,288 operations and 49,152 bytes, a relu of 64 x 64 numbers
// 4,096 operations and 32,768 bytes; a core does an operation a nanosecond, memory moves a byte.
constexpr std::string_view kMixed = R"(
input x f32[64,64]
w = const f32[64,64] seed 1
k = const f32[64,64,1,1] seed 2
v = const f32[64] seed 3
input z f32[1,64,8,8]
output a = exp(x)
output b = relu(x)
output c = matmul(x, w)
output d = conv(z, k, v) strides=[1,1] pads=[0,0,0,0] dilations=[1,1]
)";

TEST(IsMemoryBound, ByOperationsAndBytes) {
  const ScheduleScene scene(kMixed, SmallSpec());
  const ScheduleProblem problem =
      scene.Problem({{"Exp", 1}, {"Relu", 1}, {"MatMul", 1}, {"Conv", 1}}, 1,
                    {{"Exp", 4}, {"Relu", 4}, {"MatMul", 4}, {"Conv", 4}});
  EXPECT_TRUE(IsMemoryBound(problem, scene.GroupOf("Relu")));
  EXPECT_FALSE(IsMemoryBound(problem, scene.GroupOf("MatMul")));
  EXPECT_FALSE(IsMemoryBound(problem, scene.GroupOf("Conv")));
}

// In fp16 a core does 8 operations a nanosecond, and there are half the bytes: 16,384 ns of
// computing and 24,576 ns of memory.
TEST(IsMemoryBound, ByTheRateOfThePrecision) {
  DeviceSpec spec = SmallSpec();
  spec.precisions = {{"fp16", 8 * spec.flops_per_second}};
  const ScheduleScene scene(kMixed, spec);
  ScheduleProblem problem = scene.Problem({{"Exp", 1}, {"Relu", 1}, {"MatMul", 1}, {"Conv", 1}}, 1,
                                          {{"Exp", 4}, {"Relu", 4}, {"MatMul", 4}, {"Conv", 4}});
  EXPECT_FALSE(IsMemoryBound(problem, scene.GroupOf("MatMul")));
  problem.policy.precision = "fp16";
  EXPECT_TRUE(IsMemoryBound(problem, scene.GroupOf("MatMul")));
}

// Both classes in turn, in each the group that takes the fewest cores first.
TEST(InterleavedLaunches, MemoryAndComputingTakeTurns) {
  const ScheduleScene scene(kMixed, SmallSpec());
  const auto streams =
      InterleavedLaunches(scene.Problem({{"Exp", 1}, {"Relu", 1}, {"MatMul", 1}, {"Conv", 1}}, 1,
                                        {{"Exp", 4}, {"Relu", 2}, {"MatMul", 3}, {"Conv", 1}}));
  EXPECT_THAT(scene.Text(streams), ElementsAre("Relu Conv Exp MatMul"));
}

}  // namespace
}  // namespace ag
