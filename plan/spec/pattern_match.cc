#include "plan/spec/pattern_match.h"

#include <algorithm>
#include <limits>

#include "plan/spec/attention_form.h"

namespace ag {
namespace {

bool HasForm(const Graph& graph, const Node& conv, ConvolutionForm form) {
  if (form == ConvolutionForm::kAny) return true;
  const Shape& weights = graph.type(conv.inputs[1]).shape;
  if (weights.size() != 4) return false;
  if (!graph.is_constant(conv.inputs[1].node) || !graph.is_constant(conv.inputs[2].node)) {
    return false;
  }
  const auto all = [](const Ints& numbers, int64_t value) {
    return std::ranges::all_of(numbers, [&](int64_t number) { return number == value; });
  };
  if (form == ConvolutionForm::kDepthwise) {
    return weights[1] == 1 && conv.Int("group") == weights[0] && weights[0] > 1;
  }
  return weights[2] == 1 && weights[3] == 1 && conv.Int("group") == 1 &&
         all(conv.IntList("strides"), 1) && all(conv.IntList("pads"), 0);
}

bool Takes(const PatternStep& step, const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  return std::ranges::binary_search(step.ops, node.op) && HasForm(graph, node, step.form);
}

// Whether the operand is a scalar, or runs only along `axis` of `shape` in a broadcast.
bool RunsAlong(const Shape& operand, const Shape& shape, size_t axis) {
  if (operand.size() > shape.size()) return false;
  const size_t missing = shape.size() - operand.size();
  for (size_t i = 0; i < operand.size(); ++i) {
    const bool here = missing + i == axis && operand[i] == shape[axis];
    if (operand[i] != 1 && !here) return false;
  }
  return true;
}

// Whether a product scales each channel of an image by a number of its own.
bool ScalesChannels(const Graph& graph, const Node& product) {
  const TensorType& image = product.outputs[0];
  if (product.op != OpKind::kMul || image.shape.size() != 4) return false;
  const Shape scale = {image.shape[0], image.shape[1], 1, 1};
  const auto reads = [&](int image_at) {
    const Edge x = product.inputs[image_at], s = product.inputs[1 - image_at];
    return graph.type(x) == image && graph.type(s).shape == scale && !graph.is_constant(x.node) &&
           !graph.is_constant(s.node);
  };
  return reads(0) || reads(1);
}

bool IsMeanOfImage(const Node& node) {
  return node.op == OpKind::kReduceMean && node.outputs[0].shape.size() == 4 &&
         node.IntList("axes") == Ints{2, 3} && node.Int("keepdims") == 1;
}

// The rule of steps without marks.
bool IsStepUsable(const Graph& graph, OpKind anchor, Edge link, NodeId step) {
  const Node &node = graph.node(step), &before = graph.node(link.node);
  if (node.op == OpKind::kConv) {
    if (Has(anchor, kElementwise) && !ScalesChannels(graph, before)) return false;
    return node.inputs[0] == link && graph.is_constant(node.inputs[1].node) &&
           graph.is_constant(node.inputs[2].node);
  }
  if (Has(node.op, kReduction)) return IsMeanOfImage(node);
  if (before.op == OpKind::kConv) anchor = OpKind::kConv;
  if (node.outputs.size() != 1 || node.outputs[0].shape != graph.type(link).shape) return false;
  if (node.op == OpKind::kSoftmax && node.Int("axis") + 1 != std::ssize(node.outputs[0].shape))
    return false;
  if (Has(node.op, kNormalization) &&
      (node.inputs[0] != link || std::ranges::count(node.inputs, link) > 1)) {
    return false;
  }
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

// Whether a choice puts a constant of one element in the place of elements of `link`.
bool ReplacesByOne(const Graph& graph, const Node& where, Edge link) {
  const bool keeps = where.inputs[1] == link;
  const Edge fill = where.inputs[keeps ? 2 : 1];
  return where.inputs[keeps ? 1 : 2] == link && where.inputs[0] != link &&
         graph.is_constant(fill.node) && graph.type(fill).NumElements() == 1;
}

// The rule of steps with "&".
bool IsFreeStepUsable(const Graph& graph, Edge link, NodeId step) {
  const Node& node = graph.node(step);
  if (node.op == OpKind::kTranspose) return true;
  const TensorType& before = graph.type(link);
  if (node.op == OpKind::kWhere && !ReplacesByOne(graph, node, link)) return false;
  const bool is_ordered = node.op == OpKind::kSub || node.op == OpKind::kDiv;
  if (is_ordered && (node.inputs[0] != link || node.inputs[1] == link)) return false;
  if (node.op != OpKind::kMatMul) return node.outputs.size() == 1 && node.outputs[0] == before;
  const Shape& shape = node.outputs[0].shape;
  return node.inputs[0] == link && node.inputs[1] != link && before.shape.size() >= 2 &&
         graph.type(node.inputs[1]).shape.size() >= 2 && shape.size() == before.shape.size() &&
         std::equal(shape.begin(), shape.end() - 1, before.shape.begin());
}

bool Fits(const PatternStep& step, const Graph& graph, const NextNode& next) {
  if (!Takes(step, graph, next.node)) return false;
  return step.any_operands ? IsFreeStepUsable(graph, next.link, next.node)
                           : IsStepUsable(graph, next.anchor, next.link, next.node);
}

}  // namespace

uint32_t BeginMatch(const GroupPattern& pattern, const Graph& graph, NodeId node) {
  return !pattern.steps.empty() && Takes(pattern.steps[0], graph, node) ? 1u : 0u;
}

uint32_t ExtendMatch(const GroupPattern& pattern, uint32_t match, const Graph& graph,
                     const NextNode& next) {
  uint32_t extended = 0;
  for (size_t from = 0; from < pattern.steps.size(); ++from) {
    if ((match >> from & 1u) == 0) continue;
    if (pattern.steps[from].repeated && Fits(pattern.steps[from], graph, next)) {
      extended |= 1u << from;
    }
    for (size_t to = from + 1; to < pattern.steps.size(); ++to) {
      if (Fits(pattern.steps[to], graph, next)) extended |= 1u << to;
      if (!pattern.steps[to].optional) break;
    }
  }
  return extended;
}

bool TakesTransposes(const GroupPattern& pattern, const Graph& graph, NodeId node) {
  return std::ranges::any_of(pattern.steps, [&](const PatternStep& step) {
    return step.takes_movements && Takes(step, graph, node);
  });
}

uint32_t SharedSteps(const GroupPattern& pattern) {
  uint32_t steps = 0;
  for (size_t i = 0; i < pattern.steps.size(); ++i) {
    if (pattern.steps[i].shared) steps |= 1u << i;
  }
  return steps;
}

bool MayBeShared(const GroupPattern& pattern, const Graph& graph, NodeId node) {
  return std::ranges::any_of(pattern.steps, [&](const PatternStep& step) {
    return step.shared && Takes(step, graph, node);
  });
}

bool MayJoinBefore(const GroupPattern& pattern, const Graph& graph, NodeId node) {
  return std::ranges::any_of(pattern.steps, &PatternStep::takes_movements) &&
         MayStandBefore(graph, node);
}

bool HasStepFor(const GroupPattern& pattern, const Graph& graph, NodeId node) {
  const auto takes = [&](const PatternStep& step) { return Takes(step, graph, node); };
  return std::ranges::any_of(pattern.steps, takes) || MayJoinBefore(pattern, graph, node);
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
  const bool endless = std::ranges::any_of(
      pattern.steps, [](const PatternStep& step) { return step.repeated || step.takes_movements; });
  return endless ? std::numeric_limits<int>::max() : static_cast<int>(pattern.steps.size());
}

}  // namespace ag
