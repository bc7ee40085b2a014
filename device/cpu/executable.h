// A plan on the CPU: kernels made, memory allocated. Several streams run on the threads of one team
// with one core each, and a group that takes several cores runs between them. (With a team for each
// stream, the teams' idle threads would spin on the cores that other streams need.) One thread at a
// time for one executable.
#pragma once

#include "device/api/device.h"
#include "device/cpu/cache_eviction.h"

namespace ag::cpu {

class PackedWeights;

// `cores`: the cores of streams that have 0. `memory_bytes_max`: a larger plan is
// kResourceExhausted. `eviction` brings the caches into their state before a timed run. The
// device's executables share `eviction` and `packed`.
struct ExecutableOptions {
  int cores = 1;
  int64_t memory_bytes_max = 0;
  std::shared_ptr<CacheEviction> eviction;
  std::shared_ptr<PackedWeights> packed;
};

// Makes the plan ready. REQUIRES: ValidatePlan accepted the plan. kUnimplemented: a group that has
// several cores beside other groups.
StatusOr<std::unique_ptr<Executable>> MakeExecutable(const BuildRequest& request,
                                                     const ExecutableOptions& options);

}  // namespace ag::cpu
