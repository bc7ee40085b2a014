// The last word on kernels: in the plan, among the groups that really run before and after.
#pragma once

#include <functional>

#include "device/api/device.h"
#include "plan/kernel_rivals.h"

namespace ag {

struct RefineOptions {
  const WeightSource* weights = nullptr;  // Null: synthetic ones.
  // Runs are compared until they took so long by the device's clock, after kRefineRunsMin of each.
  Nanos time_max{4'000'000'000};
  std::function<void()> on_run = nullptr;  // Called before each build and run, when given.
};
inline constexpr int kRefineRunsMin = 3;
inline constexpr int kRefineRunsMax = 15;

// Traces `plan` and the same plan with its rivals, interleaved, and takes each rival that is faster
// there. Returns what was taken, if the plan is faster with it as a whole; else nothing. Groups
// that stand for equal problems keep equal kernels. A simulated device has nothing to refine.
// kInvalidArgument: a rival is of no group of the plan. Errors of the device as they come.
StatusOr<std::vector<KernelChoice>> RefineKernels(const Graph& graph, const Plan& plan,
                                                  const std::vector<KernelChoice>& rivals,
                                                  Device& device,
                                                  const RefineOptions& options = {});

}  // namespace ag
