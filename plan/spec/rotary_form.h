// What a group of rotary embedding computes (Su et al. 2021, "RoFormer", section 3.4.2), in the
// form of exporters: x * cos + concat(-x2, x1) * sin, where x1 and x2 are the halves of x. Any
// parts along the last axis will do, and the first factor may be missing. Every tensor may lie by
// strides. The form is the same on every device. Plain data and pure functions.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "graph/strided_view.h"

namespace ag {

struct RotaryPart {
  StridedOperand operand;
  bool is_negative = false;
};

// result = base * factor + concat(parts) * turn, along the last axis. Operands are what the group
// reads, or constants; each axis has one stride, the last one 1.
struct RotaryForm {
  Shape shape;  // Of the result.
  StridedOperand base, turn;
  std::optional<StridedOperand> factor;
  std::vector<RotaryPart> parts;
};

// Returns the form of a group; `nodes` are ascending and make one result, that of the last one.
// kUnimplemented "rotary: ...": the group is none, or an operand does not lie by strides.
StatusOr<RotaryForm> ReadRotary(const Graph& graph, std::span<const NodeId> nodes);

}  // namespace ag
