// A plan on a GPU: kernels made, memory laid out, every launch captured into one graph in planned
// order (launch_order.h), replayed as often as asked. A replay allocates nothing and does no work
// on the host.
#pragma once

#include <memory>

#include "device/api/device.h"
#include "device/cuda/launch/cache_flush.h"
#include "device/cuda/launch/kernel_sources.h"

namespace ag::cuda {

// What one group became: the nodes of its launch. Their blocks and shared memory say how much of
// the chip it takes.
struct GroupNodes {
  int group = 0;
  std::vector<NodeInfo> nodes;
};

// How many of a chip's `cores` SMs the group keeps busy while it runs alone: as many as its largest
// kernel has blocks, since the hardware deals a block to the SM that has the fewest. (How many
// blocks fit on one SM decides what else may run there, which pairs of groups show.) 0: it has no
// kernel, or the driver does not tell its blocks.
int BusyCores(const GroupNodes& group, int cores);

class GpuExecutable : public Executable {
 public:
  // In launch order.
  virtual const std::vector<GroupNodes>& nodes() const = 0;
  virtual bool has_early_launches() const = 0;
};

// A cold sample (ColdRunNs) is the difference between two graphs, each replayed in the order A B B
// A: one of flushes (cache_flush.h), each with the plan after it, and one of as many flushes alone.
// So neither the launch of a graph (a few microseconds) nor an event's resolution (half of one) is
// in it, which would be most of a small group's time between two events. What the flush left to be
// written back is in neither: what the plan drives out of the cache, the next flush need not. And a
// group has the gap of one launch in it, as in a plan and as when it is sampled warm.
//
// Makes the kernels, runs the plan once uncaptured (on zeros), captures it, and keeps launches that
// begin early only where two interleaved series of replays say that they make the plan faster. All
// references outlive the result.
//
// REQUIRES: ValidatePlan accepted the plan. kUnimplemented: a kernel that allocates memory while it
// is captured; the message names group and kernel.
StatusOr<std::unique_ptr<GpuExecutable>> MakeExecutable(Driver& driver, KernelSources& sources,
                                                        CacheFlush& flush, const Chip& chip,
                                                        const DeviceSpec& spec, const Graph& graph,
                                                        const Plan& plan,
                                                        const WeightSource& weights);

}  // namespace ag::cuda
