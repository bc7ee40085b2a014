// The operators after the product of a convolution or dense group, sorted as a library's epilogue
// takes them: constant vectors that are added, one addend as large as the result, one activation.
// Pure functions.
#pragma once

#include <optional>
#include <vector>

#include "device/cuda/codegen/group_context.h"

namespace ag::cuda {

struct GroupTail {
  std::vector<Edge> vectors;   // Constants of one element, or of one per channel of the result.
  std::optional<Edge> addend;  // An input port or a constant; of the result's shape.
  const Node* activation = nullptr;  // The group's last node; null: none.
};

// Returns the tail of the nodes after the group's first. Channels are axis 1 after a convolution,
// else the last axis. kUnimplemented: something else follows (two large addends, an operand made
// inside the group, an operator after the activation), or an inner result is read outside.
StatusOr<GroupTail> ReadTail(const GroupContext& context);

}  // namespace ag::cuda
