#include "plan/pattern_match.h"

#include <algorithm>
#include <limits>

namespace ag {
namespace {

bool Takes(const PatternStep& step, OpKind op) { return std::ranges::binary_search(step.ops, op); }

// A broadcast that runs along `axis` of `shape` alone, or a scalar.
bool RunsAlong(const Shape& operand, const Shape& shape, size_t axis) {
  if (operand.size() > shape.size()) return false;
  const size_t missing = shape.size() - operand.size();
  for (size_t i = 0; i < operand.size(); ++i) {
    const bool here = missing + i == axis && operand[i] == shape[axis];
    if (operand[i] != 1 && !here) return false;
  }
  return true;
}

}  // namespace

uint32_t BeginMatch(const GroupPattern& pattern, OpKind op) {
  return !pattern.steps.empty() && Takes(pattern.steps[0], op) ? 1u : 0u;
}

uint32_t ExtendMatch(const GroupPattern& pattern, uint32_t match, OpKind op) {
  uint32_t next = 0;
  for (size_t from = 0; from < pattern.steps.size(); ++from) {
    if ((match >> from & 1u) == 0) continue;
    if (pattern.steps[from].repeated && Takes(pattern.steps[from], op)) next |= 1u << from;
    for (size_t to = from + 1; to < pattern.steps.size(); ++to) {
      if (Takes(pattern.steps[to], op)) next |= 1u << to;
      if (!pattern.steps[to].optional) break;
    }
  }
  return next;
}

bool IsWholeMatch(const GroupPattern& pattern, uint32_t match) {
  for (size_t i = pattern.steps.size(); i-- > 0;) {
    if ((match >> i & 1u) != 0) return true;
    if (!pattern.steps[i].optional) return false;
  }
  return false;
}

int NodesMax(const GroupPattern& pattern) {
  if (pattern.nodes_max > 0) return pattern.nodes_max;
  const bool endless = std::ranges::any_of(pattern.steps, &PatternStep::repeated);
  return endless ? std::numeric_limits<int>::max() : static_cast<int>(pattern.steps.size());
}

bool IsStepUsable(const Graph& graph, OpKind anchor, Edge link, NodeId step) {
  const Node& node = graph.node(step);
  if (node.outputs.size() != 1 || node.outputs[0].shape != graph.type(link).shape) return false;
  if (Has(anchor, kElementwise)) return true;
  const Shape& shape = node.outputs[0].shape;
  if (shape.empty() || node.outputs[0] != graph.type(link)) return false;
  const size_t axis = anchor == OpKind::kConv ? 1 : shape.size() - 1;
  return std::ranges::all_of(node.inputs, [&](Edge operand) {
    const Shape& given = graph.type(operand).shape;
    return operand == link || given == shape ||
           (graph.is_constant(operand.node) && RunsAlong(given, shape, axis));
  });
}

}  // namespace ag
