// A plan on the CPU: kernels made, memory allocated. Several streams run on the threads of one
// team, a core each, from one group that takes several cores to the next: with a team of its own
// for each stream, the teams' idle threads spin on the cores that the others want.
#pragma once

#include "base/clock.h"
#include "device/api/device.h"
#include "device/cpu/cache_flush.h"

namespace ag::cpu {

class PackedWeights;

// `cores`: what streams of 0 cores have. `memory_bytes_max`: more than this is kResourceExhausted.
// `flush`: before each cold run, for as many cores; the device's executables share it, and
// `packed`.
struct ExecutableOptions {
  int cores = 1;
  int64_t memory_bytes_max = 0;
  std::shared_ptr<CacheFlush> flush;
  std::shared_ptr<PackedWeights> packed;
};

// REQUIRES: ValidatePlan accepted the plan. kUnimplemented: a group that has several cores beside
// others.
StatusOr<std::unique_ptr<Executable>> MakeExecutable(const Graph& graph, const Plan& plan,
                                                     const WeightSource& weights,
                                                     const ExecutableOptions& options);

}  // namespace ag::cpu
