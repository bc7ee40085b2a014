// The element-wise tail of a group (residual adds, activations) as oneDNN post-operations. Pure
// functions.
#pragma once

#include <functional>
#include <optional>

#include "device/cpu/onednn.h"
#include "device/cpu/register_ops.h"

namespace ag::cpu {

// One extra operand: a residual or a broadcast vector.
struct TailOperand {
  int post_op = 0;  // Position among the post-operations.
  Edge edge;
  Desc desc;   // The primitive's view; a port's bytes must have this form already.
  Desc given;  // The form of a constant's bytes.
};

struct Tail {
  dnnl::post_ops ops;
  std::vector<TailOperand> operands;
  size_t done = 1;  // Nodes of the group computed by anchor and tail together.
};

// The primitive's view of an operand of the result's shape or broadcast to it; empty descriptors
// when it cannot be read in place.
struct OperandDescs {
  Desc desc, given;
};
using OperandDesc = std::function<OperandDescs(const GroupContext& context, Edge edge)>;

// Turns as many nodes of [first, first + count_max) as possible into post-operations. Each must
// read the node before it once, and nothing outside the group may read that node.
Tail MakeTail(const GroupContext& context, size_t first, size_t count_max, const OperandDesc& desc);

// Binds the tail's operands to `call`.
Status BindTail(const GroupContext& context, const Tail& tail, Call* call);

// Returns, for a binary operator, the position of node i's operand that is not node i-1's output;
// -1 otherwise.
int OtherOperand(const GroupContext& context, size_t i);

// Returns the port of OtherOperand when that lies as the group's output does; -1: it does not.
int ResidualPort(const GroupContext& context, size_t i);

// Returns OtherOperand of an add when it is a constant vector over the last axis, of so many
// columns.
std::optional<Edge> ColumnBias(const GroupContext& context, size_t i, int64_t columns);

// Returns the bounds of a relu or clip; nothing: it is another operator.
std::optional<ValueBounds> BoundsOf(const Node& node);

// Returns what loops compute in registers for the node; nothing: it is another operator.
std::optional<RegisterOps> RegisterOpsOf(const Node& node);

// Returns true when node i reads node i-1's only output exactly once and no port outside reads it.
bool Follows(const GroupContext& context, size_t i);

}  // namespace ag::cpu
