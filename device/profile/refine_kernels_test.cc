#include "device/profile/refine_kernels.h"

#include <gtest/gtest.h>

#include "device/profile/testing/fake_device.h"

namespace ag {
namespace {

Plan FirstKernelPlan() {
  Plan plan = SingleGroupPlan(ReluProblem());
  plan.groups[0].kernel = "first";
  return plan;
}

StatusOr<std::vector<KernelChoice>> Refine(FakeDevice& device, const RefineOptions& options = {}) {
  return RefineKernels(ReluProblem().graph, FirstKernelPlan(), {{0, "second"}}, device, options);
}

using Choices = std::vector<KernelChoice>;

TEST(RefineKernels, TakesWhatIsFasterInThePlan) {
  const struct {
    const char* name;
    double first_ns, second_ns;
    Choices taken;
  } kCases[] = {
      {"the plan's own", 10e3, 11e3, {}},
      {"the rival", 14e3, 11e3, {{0, "second"}}},
      {"within noise", 11e3, 10.9e3, {}},
  };
  for (const auto& c : kCases) {
    FakeDevice device;
    device.kernels = {{"first", [&] { return c.first_ns; }},
                      {"second", [&] { return c.second_ns; }}};
    const auto taken = Refine(device);
    ASSERT_EQ(ToString(taken.status()), "OK") << c.name;
    EXPECT_EQ(*taken, c.taken) << c.name;
  }
}

TEST(RefineKernels, TheWholePlanHasTheLastWord) {
  FakeDevice device;
  int traced = 0;  // The traced runs promise a gain that the whole plan does not show.
  device.kernels = {{"first", [] { return 10e3; }},
                    {"second", [&] { return ++traced <= kRefineRunsMax ? 8e3 : 11e3; }}};
  EXPECT_EQ(*Refine(device), Choices());
  EXPECT_EQ(traced, 2 * kRefineRunsMax);
}

TEST(RefineKernels, LongRunsAreFew) {
  FakeDevice device;
  int runs = 0, steps = 0;
  device.kernels = {{"first", [] { return 2e9; }}, {"second", [&] { return ++runs, 1e9; }}};
  EXPECT_EQ(Refine(device, {.on_run = [&] { ++steps; }})->size(), 1u);
  EXPECT_EQ(runs, 2 * kRefineRunsMin);
  EXPECT_EQ(steps, 4 + 4 * kRefineRunsMin);  // Two plans are built and run, twice.
}

TEST(RefineKernels, WithoutRivalsNothingIsBuilt) {
  FakeDevice device;  // Without kernels, so that any build would fail.
  const auto taken = RefineKernels(ReluProblem().graph, FirstKernelPlan(), {}, device);
  EXPECT_EQ(ToString(taken.status()), "OK");
  EXPECT_NE(ToString(Refine(device).status()), "OK");
}

TEST(RefineKernels, RivalsAreOfGroupsOfThePlan) {
  FakeDevice device;
  for (const int group : {-1, 1}) {
    const auto taken =
        RefineKernels(ReluProblem().graph, FirstKernelPlan(), {{group, "second"}}, device);
    EXPECT_EQ(
        ToString(taken.status()),
        fmt::format("INVALID_ARGUMENT: rival kernel second: of group {}, the plan has 1", group));
  }
}

}  // namespace
}  // namespace ag
