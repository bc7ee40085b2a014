#include "plan/schedule/least_makespan.h"

#include <gtest/gtest.h>

#include "plan/testing/schedule_scene.h"
#include "plan/testing/testing.h"

namespace ag {
namespace {

constexpr std::string_view kForkJoin =
    "input x f32[4]\na = exp(x)\noutput y = add(relu(a), neg(a))\n";

TEST(LeastMakespan, ByHand) {
  const struct {
    const char* name;
    double event_ns, relu_ns, neg_ns, add_ns, least_ns;
  } kCases[] = {
      {"the event hides behind the long branch", 10, 50, 80, 20, 100 + 80 + 20},
      {"one branch pays both events", 10, 75, 80, 20, 100 + 80 + 10 + 20},
      {"branches of one length pay one", 10, 80, 80, 20, 100 + 80 + 10 + 20},
      {"no events", 0, 75, 80, 20, 100 + 80 + 20},
      {"Add takes less than an event", 40, 80, 80, 20, 100 + 80 + 20 + 20},
  };
  const auto least = [&](double event_ns, double relu_ns, double neg_ns, double add_ns,
                         int64_t steps_max) {
    DeviceSpec spec = SmallSpec();
    spec.event_ns = event_ns;
    const ScheduleScene scene(kForkJoin, spec);
    return LeastMakespanNs(
        scene.Problem({{"Exp", 100}, {"Relu", relu_ns}, {"Neg", neg_ns}, {"Add", add_ns}}, 1),
        steps_max);
  };
  for (const auto& c : kCases) {
    EXPECT_DOUBLE_EQ(least(c.event_ns, c.relu_ns, c.neg_ns, c.add_ns, 1000), c.least_ns) << c.name;
  }
  EXPECT_DOUBLE_EQ(least(10, 80, 80, 20, /*steps_max=*/2), 100 + 80 + 20);
}

// Exp has three readers; the part ends without a group that all others are before.
TEST(LeastMakespan, OneReaderOfAGroupNeedsNoEvent) {
  const ScheduleScene scene(
      "input x f32[4]\na = exp(x)\noutput p = relu(a)\noutput q = neg(a)\noutput r = tanh(a)\n",
      SmallSpec());
  EXPECT_DOUBLE_EQ(
      LeastMakespanNs(scene.Problem({{"Exp", 100}, {"Relu", 50}, {"Neg", 45}, {"Tanh", 38}}, 4)),
      100 + 10 + 45);
}

}  // namespace
}  // namespace ag
