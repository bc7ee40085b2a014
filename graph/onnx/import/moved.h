// Operators that only move the elements of one tensor, computed on its bytes: any element type of
// fixed size, no detour over doubles. Pure functions.
#pragma once

#include <optional>

#include "graph/graph.h"
#include "graph/tensor.h"

namespace ag {

// Returns the result of a reshape, slice, transpose or expand; nothing for other operators and for
// strings. A reshape shares the operand's bytes. REQUIRES: `node` is built, of this operand.
std::optional<Tensor> Moved(const Node& node, const Tensor& operand);

}  // namespace ag
