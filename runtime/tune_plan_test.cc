#include "runtime/tune_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "device/open_device.h"
#include "plan/format/plan_codec.h"
#include "plan/format/plan_validate.h"
#include "plan/testing/testing.h"

namespace ag {
namespace {

// Layers in a chain and in two branches, so small that a launch is most of their time.
constexpr std::string_view kChain = R"(
input x f32[2,2]
w = const f32[2,2] seed 1
output softmax(matmul(softmax(matmul(x, w)) axis=1, w)) axis=1
)";
constexpr std::string_view kBeside = R"(
input x f32[2,2]
w = const f32[2,2] seed 1
v = const f32[2,2] seed 2
output "p" = softmax(matmul(softmax(matmul(x, w)) axis=1, w)) axis=1
output "q" = softmax(matmul(softmax(matmul(x, v)) axis=1, v)) axis=1
)";

int UsedStreams(const Plan& plan) {
  return static_cast<int>(std::ranges::count_if(
      plan.streams, [](const Stream& stream) { return !stream.launches.empty(); }));
}

Plan Tune(std::string_view graph, Device& device, int streams) {
  auto plan = TunePlan(GraphOf(graph), device, {.streams = streams});
  AG_CHECK(plan.ok());
  AG_CHECK(ValidatePlan(GraphOf(graph), *plan, device.spec()).ok());
  return *std::move(plan);
}

TEST(TunePlan, TakesSeveralStreamsWhereTheyAreFaster) {
  const auto device = *OpenDevice("sim:small");
  EXPECT_GT(UsedStreams(Tune(kBeside, *device, 0)), 1);
  EXPECT_EQ(UsedStreams(Tune(kBeside, *device, 1)), 1) << "as it was told";
  EXPECT_EQ(UsedStreams(Tune(kChain, *device, 0)), 1) << "nothing to run beside";
  EXPECT_EQ(Tune(kBeside, *device, 0).environment, device->environment());
}

TEST(TunePlan, OneStreamGivesTheSamePlanAsBefore) {
  const auto device = *OpenDevice("sim:small");
  EXPECT_EQ(EncodePlan(Tune(kChain, *device, 0)), EncodePlan(Tune(kChain, *device, 1)));
}

TEST(TunePlan, UngroupedOperatorsStayOnOneStream) {
  const auto device = *OpenDevice("sim:small");
  const auto plan = TunePlan(GraphOf(kBeside), *device, {.grouped = false});
  ASSERT_EQ(ToString(plan.status()), "OK");
  EXPECT_EQ(UsedStreams(*plan), 1);
}

}  // namespace
}  // namespace ag
