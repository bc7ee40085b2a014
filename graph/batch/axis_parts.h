// What a cut of a result along one axis means for the operands: the loop dimensions of GraphTurbo's
// Algorithm 1 (Zhao et al., OSDI 2023, section 4.1), for the operators of graph/ops.def. Pure
// functions.
#pragma once

#include <optional>

#include "graph/graph.h"

namespace ag {

// What one of several equal pieces of a result, cut along an axis, reads of an operand.
struct AxisPart {
  enum class Kind : uint8_t {
    kCut,    // The same piece of the operand along `axis`.
    kWhole,  // All of the operand: it has no such axis (a weight, a broadcast).
    kMixed,  // Parts that other pieces need too (windows, sums), or nobody knows.
  };
  Kind kind = Kind::kMixed;
  int axis = -1;  // kCut: of the operand.
  bool operator==(const AxisPart&) const = default;
};

// Returns the part that pieces of the node's results along `axis` read of operand `operand`.
// REQUIRES: axis is one of the node's first result's.
AxisPart PartOfOperand(const Graph& graph, NodeId id, int axis, size_t operand);

// Returns the axis of the node's results whose pieces read the pieces of the operand along `axis`.
// Nothing: there is none.
std::optional<int> ResultAxisOf(const Graph& graph, NodeId id, size_t operand, int axis);

// Returns true when the node's results can be cut along `axis`: no operand is mixed.
bool CanCut(const Graph& graph, NodeId id, int axis);

}  // namespace ag
