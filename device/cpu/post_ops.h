// The element-wise tail of a group (residual adds, activations) as oneDNN post-operations.
#pragma once

#include <functional>

#include "device/cpu/onednn.h"

namespace ag::cpu {

// One extra operand: a residual or a broadcast vector.
struct TailOperand {
  int post_op = 0;  // Position among the post-operations.
  Edge edge;
  Desc desc;   // As the primitive reads it; a port's bytes must lie like that already.
  Desc given;  // As a constant's bytes lie.
};

struct Tail {
  dnnl::post_ops ops;
  std::vector<TailOperand> operands;
  size_t done = 1;  // Nodes of the group computed by anchor and tail together.
};

// How the primitive sees an operand of the result's shape or broadcast to it; empty descriptors
// when it cannot be read in place.
struct OperandDescs {
  Desc desc, given;
};
using OperandDesc = std::function<OperandDescs(const GroupContext& context, Edge edge)>;

// Turns nodes [first, first + count_max) into post-operations, as many as can be. Each must read
// the node before it once, and nothing outside the group may read that one.
Tail MakeTail(const GroupContext& context, size_t first, size_t count_max, const OperandDesc& desc);

// Binds the tail's operands to `call`.
Status BindTail(const GroupContext& context, const Tail& tail, Call* call);

// Position of the operand of node i that is not node i-1's output, for binary operators; -1
// otherwise.
int OtherOperand(const GroupContext& context, size_t i);

// True when node i reads node i-1's only output exactly once and no port outside reads that output.
bool Follows(const GroupContext& context, size_t i);

}  // namespace ag::cpu
