// Kernels for element-wise operators as one pass over memory: a chain is compiled to a list of
// block operators over registers of kBlock elements, which stay in the cache from the first
// operator to the last. One thread at a time for one kernel.
#pragma once

#include "device/cpu/kernel.h"

namespace ag::cpu {

// A tensor at inputs[slot], beyond the group's own ports, that a kernel before the chain writes.
struct ChainSource {
  Port port;
  int slot = 0;
};

// Returns a kernel of group.nodes[first..) that writes all of the group's outputs. Its inputs are
// the group's ports and then `sources`. kUnimplemented: an operator that is not element-wise (batch
// norm counts as such), a type without kernels, layouts that do not fit each other.
StatusOr<std::unique_ptr<Kernel>> MakeChain(const GroupContext& context, size_t first,
                                            std::span<const ChainSource> sources);

// A chain that runs part by part, for a kernel that goes on with what the chain makes while it lies
// in the caches of a core.
class ChainParts {
 public:
  virtual ~ChainParts() = default;
  // Computes the elements [begin, end) of all outputs. `worker` is in [0, cores); no two calls at a
  // time have the same one.
  virtual void Run(int64_t begin, int64_t end, int worker, Inputs inputs, Outputs outputs) = 0;
};

// Returns the group's chain in parts. kUnimplemented: as MakeChain; or its outputs are not plain,
// differ in shape, or floats do not hold every value.
StatusOr<std::unique_ptr<ChainParts>> MakeChainParts(const GroupContext& context);

// Returns OK when MakeChain could make the kernel; needs no constants.
Status CheckChain(const GroupContext& context, size_t first);

}  // namespace ag::cpu
