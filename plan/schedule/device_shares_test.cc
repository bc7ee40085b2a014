#include "plan/schedule/device_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/schedule/makespan.h"
#include "plan/testing/schedule_scene.h"
#include "plan/testing/testing.h"

namespace ag {
namespace {

using testing::ElementsAre;

DeviceSpec EightCores() {
  DeviceSpec spec = SmallSpec();
  spec.cores = 8;
  spec.block_outputs = 1;
  return spec;
}

// A chain of three groups, and two groups beside it.
constexpr std::string_view kChainAndTwo = R"(
input x f32[8]
output c = neg(relu(exp(x)))
output d = tanh(x)
output e = sqrt(x)
)";

// Exp takes 4 of 8 cores; Sqrt needs 2 and begins beside it, Tanh needs 6 and waits until the chain
// has ended, on the stream of the chain: no event says so.
TEST(DeviceShares, WhatDoesNotFitBesideTheLongPathWaits) {
  const ScheduleScene scene(kChainAndTwo, EightCores());
  const ScheduleProblem problem =
      scene.Problem({{"Exp", 100}, {"Relu", 100}, {"Neg", 100}, {"Tanh", 90}, {"Sqrt", 120}}, 4,
                    {{"Exp", 4}, {"Relu", 4}, {"Neg", 4}, {"Tanh", 6}, {"Sqrt", 2}});
  const auto streams = DeviceShares(problem);
  EXPECT_THAT(scene.Text(streams), ElementsAre("Exp Relu Neg Tanh", "Sqrt"));
  EXPECT_DOUBLE_EQ(MakespanNs(problem, streams), 390);
}

TEST(DeviceShares, WithCoresForAllEachBeginsAtOnce) {
  const ScheduleScene scene(kChainAndTwo, EightCores());
  const ScheduleProblem problem =
      scene.Problem({{"Exp", 100}, {"Relu", 100}, {"Neg", 100}, {"Tanh", 150}, {"Sqrt", 120}}, 2,
                    {{"Exp", 4}, {"Relu", 4}, {"Neg", 4}, {"Tanh", 4}, {"Sqrt", 4}});
  const auto streams = DeviceShares(problem);
  EXPECT_THAT(scene.Text(streams), ElementsAre("Exp Relu Neg", "Tanh Sqrt"));
  EXPECT_DOUBLE_EQ(MakespanNs(problem, streams), 300);
}

// Both branches are ready when Exp ends; the longer one continues on its stream, the other one
// begins after an event of 10 ns, and Add after another one.
TEST(DeviceShares, TheLongBranchNeedsNoEvent) {
  const ScheduleScene scene("input x f32[4]\na = exp(x)\noutput y = add(relu(a), neg(a))\n",
                            SmallSpec());
  const ScheduleProblem problem =
      scene.Problem({{"Exp", 100}, {"Relu", 75}, {"Neg", 80}, {"Add", 10}}, 2);
  const auto streams = DeviceShares(problem);
  EXPECT_THAT(scene.Text(streams), ElementsAre("Exp Neg", "Relu<Exp Add<Neg"));
  EXPECT_DOUBLE_EQ(MakespanNs(problem, streams), 100 + 10 + 75 + 10 + 10 - 5);
}

}  // namespace
}  // namespace ag
