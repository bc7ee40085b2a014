// The final choice between close kernels: inside the plan, between the groups that really run
// before and after. One thread at a time for one device.
#pragma once

#include <functional>

#include "device/api/device.h"
#include "plan/fusion/kernel_rivals.h"

namespace ag {

struct RefineOptions {
  const WeightSource* weights = nullptr;  // Null: synthetic ones.
  // Runs are compared until they took this long by the device's clock, after kRefineRunsMin of
  // each.
  Nanos time_max{4'000'000'000};
  std::function<void()> on_run = nullptr;  // Called before each build and run, when given.
};
inline constexpr int kRefineRunsMin = 3;
inline constexpr int kRefineRunsMax = 15;

// Traces `plan` and the same plan with its rivals, interleaved, and takes each rival that is faster
// there. Returns the taken rivals if the whole plan is faster with them, else nothing. Groups of
// equal problems keep equal kernels. Returns nothing for a simulated device. kInvalidArgument: a
// rival is of no group of the plan. Otherwise returns the device's errors.
StatusOr<std::vector<KernelChoice>> RefineKernels(const Graph& graph, const Plan& plan,
                                                  const std::vector<KernelChoice>& rivals,
                                                  Device& device,
                                                  const RefineOptions& options = {});

}  // namespace ag
