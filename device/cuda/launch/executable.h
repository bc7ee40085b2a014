// A plan on a GPU: kernels made, memory laid out, every launch captured into one graph in planned
// order (launch_order.h), which is replayed. A replay allocates nothing and does no work on the
// host. One thread at a time.
#pragma once

#include <memory>

#include "device/api/device.h"
#include "device/cuda/launch/cache_eviction.h"
#include "device/cuda/launch/kernel_sources.h"

namespace ag::cuda {

// The nodes of one group's launch. Their blocks and shared memory tell how much of the chip it
// uses.
struct GroupNodes {
  int group = 0;
  std::vector<NodeInfo> nodes;
};

// Returns how many of a chip's `cores` SMs the group keeps busy while it runs alone: the blocks of
// its largest kernel, since the hardware gives each block to the SM with the fewest. (The number of
// blocks that fit on one SM decides what else may run there, which pairs of groups show.) 0: it has
// no kernel, or the driver does not tell its blocks.
int ActiveCores(const GroupNodes& group, int cores);

class GpuExecutable : public Executable {
 public:
  // In launch order.
  virtual const std::vector<GroupNodes>& nodes() const = 0;
  virtual bool has_early_launches() const = 0;
};

// What the executables of one device share.
struct GpuContext {
  Driver& driver;
  KernelSources& sources;
  CacheEviction& eviction;
  const Chip& chip;
  const DeviceSpec& spec;
};

// A cold sample (Caches::kEvicted) is the difference between two graphs, replayed in the order A B
// B A: one of evictions (cache_eviction.h) with the plan after each, and one of as many evictions
// alone. The difference contains neither the launch of a graph (a few microseconds) nor an event's
// resolution (half of one), which would be most of a small group's time between two events. It does
// not contain the write-back of the evicting data either: the next eviction need not write back
// what the plan removed from the cache. It contains the gap of one launch per group, as in a plan
// and in a warm sample.
//
// MakeExecutable makes the kernels, runs the plan once uncaptured (on zeros), captures it, and
// keeps early launches only where two interleaved series of replays show that they make the plan
// faster. All references outlive the result.
//
// REQUIRES: ValidatePlan accepted the plan. kUnimplemented: a kernel allocates memory while it is
// captured; the message names group and kernel.
StatusOr<std::unique_ptr<GpuExecutable>> MakeExecutable(const GpuContext& gpu,
                                                        const BuildRequest& request);

}  // namespace ag::cuda
