#include "device/cuda/group_tail.h"

#include <algorithm>

namespace ag::cuda {
namespace {

bool IsActivation(const Node& node) { return Has(node.op, kElementwise) && Has(node.op, kUnary); }

// Returns true when `operand` has one element, or one for each element of `axis` of `shape`.
bool IsVector(const Shape& operand, const Shape& shape, size_t axis) {
  const int64_t elements = NumElements(operand);
  if (elements == 1) return operand.size() <= shape.size();
  if (operand.size() > shape.size() || elements != shape[axis]) return false;
  const size_t missing = shape.size() - operand.size();
  return axis >= missing && operand[axis - missing] == elements;
}

// Returns the operand of node i that is not node i-1's result.
StatusOr<Edge> OtherOperand(const GroupContext& context, size_t i) {
  const Node& node = context.node(i);
  const Edge before{context.group.nodes[i - 1], 0};
  const auto reads = std::ranges::count(node.inputs, before);
  if (node.inputs.size() != 2 || reads != 1) {
    return Err(StatusCode::kUnimplemented, "{} after {}: reads it {} times in {} operands",
               Info(node.op).name, Info(context.node(i - 1).op).name, reads, node.inputs.size());
  }
  return node.inputs[0] == before ? node.inputs[1] : node.inputs[0];
}

Status AddOperand(const GroupContext& context, Edge other, GroupTail* tail) {
  const Shape& result = context.node(0).outputs[0].shape;
  const Shape& shape = context.graph.type(other).shape;
  const bool is_port = context.InputOf(other) >= 0;
  const bool is_constant = !is_port && context.graph.is_constant(other.node);
  if (!is_port && !is_constant) {
    return Err(StatusCode::kUnimplemented, "Add: an operand is made inside the group");
  }
  const size_t axis = context.node(0).op == OpKind::kConv ? 1 : result.size() - 1;
  if (is_constant && IsVector(shape, result, axis)) {
    tail->vectors.push_back(other);
    return OkStatus();
  }
  if (shape != result || tail->addend) {
    return Err(StatusCode::kUnimplemented, "Add: {} of {} to {}",
               tail->addend ? "a second operand" : "an operand", ShapeToString(shape),
               ShapeToString(result));
  }
  tail->addend = other;
  return OkStatus();
}

}  // namespace

StatusOr<GroupTail> ReadTail(const GroupContext& context) {
  const Group& group = context.group;
  if (group.outputs.size() != 1 || group.outputs[0].edge != Edge{group.nodes.back(), 0}) {
    return Err(StatusCode::kUnimplemented, "{}: a result inside the group is wanted outside",
               group.pattern);
  }
  GroupTail tail;
  for (size_t i = 1; i < group.nodes.size(); ++i) {
    const Node& node = context.node(i);
    if (tail.activation != nullptr || node.outputs[0] != context.node(0).outputs[0]) {
      return Err(StatusCode::kUnimplemented, "{}: {} of {} after {}", group.pattern,
                 Info(node.op).name, node.outputs[0].ToString(), Info(context.node(i - 1).op).name);
    }
    if (node.op == OpKind::kAdd) {
      AG_LET(const Edge other, OtherOperand(context, i));
      AG_TRY(AddOperand(context, other, &tail));
    } else if (IsActivation(node) && node.inputs[0] == Edge{group.nodes[i - 1], 0}) {
      tail.activation = &node;
    } else {
      return Err(StatusCode::kUnimplemented, "{}: {} in the epilogue", group.pattern,
                 Info(node.op).name);
    }
  }
  return tail;
}

}  // namespace ag::cuda
