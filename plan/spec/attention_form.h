// What a group of attention computes, read from its operators: two products with softmax between
// them, a scale, operations on the scores, and where the operands lie by strides (docs/fusion.md,
// "Attention"). The form is the same on every device; a device's kernels refuse by name what they
// lack. Plain data and pure functions.
#pragma once

#include <span>
#include <vector>

#include "graph/strided_view.h"

namespace ag {

// An operation on the scores with another matrix: rows are queries, columns are keys.
struct AttentionStep {
  // kReplace: where a mask of booleans says so, a constant takes the place of the score.
  enum class Kind : uint8_t { kAdd, kSub, kMul, kDiv, kReplace };
  Kind kind = Kind::kAdd;
  StridedOperand operand;
  // Of kReplace: the constant, of one element, and the value of the mask that keeps a score.
  Edge fill;
  bool keeps = true;
};

// A constant of one element that queries, keys or the first scores are multiplied or divided by.
struct AttentionFactor {
  Edge constant;
  bool divides = false;
};

// softmax(steps(q . k * factors)) . v, with k as [..., depth, keys]. Operands are what the group
// reads, or constants, with axes as the operator that reads them wants them; the last two have one
// stride each.
struct AttentionForm {
  StridedOperand q, k, v;
  StridedView out;  // The second product's result in the group's output.
  std::vector<AttentionFactor> factors;
  std::vector<AttentionStep> steps;
  int64_t items = 1;  // Products: heads of all batches.
  int64_t queries = 0, keys = 0, depth = 0, width = 0;
};

// Returns the form of a group; `nodes` are ascending and make one result, that of the last one.
// kUnimplemented "attention: ...": the group is none, or an operand does not lie by strides.
StatusOr<AttentionForm> ReadAttention(const Graph& graph, std::span<const NodeId> nodes);

// Returns true for operators that may stand in a group between a tensor and the product or concat
// that reads it: they move elements, scale them by a constant of one element, or negate them.
bool MayStandBefore(const Graph& graph, NodeId node);

}  // namespace ag
