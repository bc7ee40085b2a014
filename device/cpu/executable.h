// A plan on the CPU: kernels made, memory allocated, one thread per stream beyond the first.
#pragma once

#include "base/clock.h"
#include "device/api/device.h"

namespace ag::cpu {

// `cores`: what streams of 0 cores have. `memory_bytes_max`: more than this is kResourceExhausted.
struct ExecutableOptions {
  int cores = 1;
  int64_t memory_bytes_max = 0;
};

// REQUIRES: ValidatePlan accepted the plan.
StatusOr<std::unique_ptr<Executable>> MakeExecutable(const Graph& graph, const Plan& plan,
                                                     const WeightSource& weights,
                                                     const ExecutableOptions& options);

}  // namespace ag::cpu
