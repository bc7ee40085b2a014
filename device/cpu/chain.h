// Element-wise operators as one pass over memory: the chain is compiled to a list of block
// operators over registers of kBlock elements, which stay in the cache from the first operator to
// the last.
#pragma once

#include "device/cpu/kernel.h"

namespace ag::cpu {

// A tensor that something before the chain writes at inputs[slot]; more than the group's own ports.
struct ChainSource {
  Port port;
  int slot = 0;
};

// Makes a kernel of group.nodes[first..), writing all of the group's outputs. Its inputs are the
// group's ports and then `sources`. kUnimplemented: an operator that is not element-wise (batch
// norm counts as such), a type without kernels, layouts that do not fit each other.
StatusOr<std::unique_ptr<Kernel>> MakeChain(const GroupContext& context, size_t first,
                                            std::span<const ChainSource> sources);

// Says whether MakeChain could, without constants at hand.
Status CheckChain(const GroupContext& context, size_t first);

}  // namespace ag::cpu
