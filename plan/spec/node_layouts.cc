#include "plan/spec/node_layouts.h"

#include <algorithm>

#include "graph/resize.h"
#include "graph/shapes.h"
#include "plan/spec/pattern_match.h"

namespace ag {
namespace {

// Whether `layout` may be chosen for a tensor; CanHave says whether it is possible at all.
bool Fits(const TensorType& type, Layout layout) {
  if (layout == Layout::kPlain) return true;
  if (!CanHave(type, layout)) return false;
  const int64_t block = BlockOf(layout);
  return block == 1 || (type.dtype == DType::kFloat32 && type.shape[1] >= block);
}

bool HasWholeBlocks(const TensorType& type, Layout layout) {
  return type.shape[1] % BlockOf(layout) == 0;
}

// Whether zeros in the operands' padding give zeros in the result's padding.
bool KeepsZeros(const Graph& graph, const Node& node) {
  if (GivesZeroForZero(node) || node.op == OpKind::kMul) return true;
  if (node.op != OpKind::kAdd && node.op != OpKind::kSub) return false;
  return std::ranges::all_of(node.inputs, [&](Edge operand) {
    return graph.type(operand).shape.size() == 4 && graph.type(operand).shape[1] != 1;
  });
}

// Whether an element-wise node with a result in `layout` can read the operand: a scalar, or at
// least one value per channel. Other operands would need a broadcast across the blocks.
bool IsOperandUsable(const Graph& graph, Edge operand, const TensorType& result, Layout layout) {
  const TensorType& type = graph.type(operand);
  if (type.NumElements() == 1) return true;
  const size_t rank = type.shape.size();
  if (rank < 3 || type.shape[rank - 3] != result.shape[1]) return false;
  return graph.is_constant(operand.node) || Fits(type, layout);
}

bool CanElementwise(const Graph& graph, const Node& node, Layout layout) {
  const TensorType& result = node.outputs[0];
  if (!HasWholeBlocks(result, layout) && !KeepsZeros(graph, node)) return false;
  return std::ranges::all_of(
      node.inputs, [&](Edge operand) { return IsOperandUsable(graph, operand, result, layout); });
}

// Returns the layout of a tensor at a node that works in `layout`.
Layout AtTensor(const TensorType& type, Layout layout) {
  if (!Fits(type, layout)) return Layout::kPlain;
  if (layout != Layout::kChannelsLast8 || type.shape.size() != 4) return layout;
  return HasSameBytes(type, layout, Layout::kChannelsLast) ? Layout::kChannelsLast : layout;
}

// Whether the operand is read in plain layout, whatever layout the node works in.
bool IsWeight(const Node& node, size_t index) {
  return index > 0 && (node.op == OpKind::kConv || node.op == OpKind::kBatchNorm);
}

// Returns the node's layout under its name: channels_last when channels_last8 would pad nothing.
Layout NameFor(const Graph& graph, const Node& node, Layout layout) {
  const bool pads = layout != Layout::kChannelsLast8 || IsPadded(graph, node);
  return pads ? layout : Layout::kChannelsLast;
}

// Whether a convolution can work in `layout`: with groups, only when no block spans two groups; a
// depthwise one always can.
bool CanConv(const Graph& graph, const Node& node, Layout layout) {
  const int64_t groups = node.Int("group"), multiple = ChannelMultipleOf(layout);
  if (groups == 1 || multiple == 1) return true;
  const int64_t in = graph.type(node.inputs[0]).shape[1];
  const int64_t out = node.outputs[0].shape[1];
  if (groups == in && groups == out) return true;
  return in / groups % multiple == 0 && out / groups % multiple == 0;
}

// Without its folded axes the result is plain.
bool CanReduce(const Graph& graph, const Node& node, Layout layout) {
  const TensorType& x = graph.type(node.inputs[0]);
  const auto is_side = [](int64_t axis) { return axis == 2 || axis == 3; };
  if (!Fits(x, layout) || !std::ranges::all_of(node.IntList("axes"), is_side)) return false;
  return node.Int("keepdims") == 1 ? Fits(node.outputs[0], layout) : HasWholeBlocks(x, layout);
}

bool CanConcat(const Graph& graph, const Node& node, Layout layout) {
  return std::ranges::all_of(node.inputs, [&](Edge operand) {
    return !graph.is_constant(operand.node) && Fits(graph.type(operand), layout) &&
           HasWholeBlocks(graph.type(operand), layout);
  });
}

bool CanCut(const Graph& graph, const Node& node, Layout layout) {
  const TensorType& whole = graph.type(node.inputs[0]);
  if (!Fits(whole, layout) || !HasWholeBlocks(whole, layout)) return false;
  if (node.op == OpKind::kSlice) {
    const Ints& axes = node.IntList("axes");
    const Ints& starts = node.IntList("starts");
    for (size_t i = 0; i < axes.size(); ++i) {
      if (node.IntList("steps")[i] != 1) return false;
      const int64_t end = node.IntList("ends")[i];
      const int64_t first = ResolveSlice(whole.shape[axes[i]], starts[i], end, 1).start;
      if (axes[i] == 1 && first % BlockOf(layout) != 0) return false;
    }
  }
  return std::ranges::all_of(node.outputs, [&](const TensorType& part) {
    return Fits(part, layout) && HasWholeBlocks(part, layout);
  });
}

// Other layouts than plain are for images: a resize must keep batch and channels.
bool CanResize(const Graph& graph, const Node& node, Layout layout) {
  const TensorType& x = graph.type(node.inputs[0]);
  return Fits(x, layout) && ResizeOf(*node.attributes, x.shape).Keeps(2);
}

// Whether the operator can work on tensors in `layout`.
bool CanWorkIn(const Graph& graph, const Node& node, Layout layout) {
  if (layout == Layout::kPlain) return true;
  if (Has(node.op, kReduction)) return CanReduce(graph, node, layout);
  if (!Fits(node.outputs[0], layout)) return false;
  if (Has(node.op, kElementwise)) return CanElementwise(graph, node, layout);
  if (node.op == OpKind::kConv) return CanConv(graph, node, layout);
  if (Has(node.op, kPooling)) return Fits(graph.type(node.inputs[0]), layout);
  if (Has(node.op, kResampling)) return CanResize(graph, node, layout);
  if (node.op == OpKind::kBatchNorm) return HasWholeBlocks(node.outputs[0], layout);
  if (node.op == OpKind::kPad) return Fits(graph.type(node.inputs[0]), layout);
  if (node.op == OpKind::kConcat) return CanConcat(graph, node, layout);
  if (node.op == OpKind::kSplit || node.op == OpKind::kSlice) return CanCut(graph, node, layout);
  return false;
}

// Whether all that reads the node's result can work on it in channels_last.
bool FeedsImages(const Graph& graph, NodeId id) {
  const Edge result{id, 0};
  return !graph.is_output(result) && std::ranges::all_of(graph.uses(result), [&](const Use& use) {
    const Node& reader = graph.node(use.node);
    return !reader.outputs.empty() && CanWorkIn(graph, reader, Layout::kChannelsLast);
  });
}

// Returns channels_last where a transpose is a view because its image lies so. Channels move to the
// front that way where contractions prefer another layout than plain.
Layout OfTranspose(const Graph& graph, NodeId id, const GroupPattern& pattern,
                   const NodeLayouts& chosen, Layout preferred) {
  const Node& node = graph.node(id);
  if (std::ranges::count(pattern.layouts, Layout::kChannelsLast) == 0) return Layout::kPlain;
  const ChannelMove move = ChannelMoveOf(node);
  const Edge operand = node.inputs[0];
  if (move == ChannelMove::kToBack) {
    const bool is_plain = chosen.Written(graph, operand) == Layout::kPlain;
    const bool may = !is_plain && CanHave(graph.type(operand), Layout::kChannelsLast);
    return may ? Layout::kChannelsLast : Layout::kPlain;
  }
  const bool may = move == ChannelMove::kToFront && preferred != Layout::kPlain &&
                   CanHave(node.outputs[0], Layout::kChannelsLast) && FeedsImages(graph, id);
  return may ? Layout::kChannelsLast : Layout::kPlain;
}

Layout Choose(const Graph& graph, const Node& node, const GroupPattern& pattern,
              const NodeLayouts& chosen, Layout preferred) {
  const std::vector<Layout>& listed = pattern.layouts;
  if (Has(node.op, kContraction)) {
    const Layout wanted = NameFor(graph, node, preferred);
    if (std::ranges::count(listed, wanted) > 0 && CanWorkIn(graph, node, wanted)) return wanted;
    for (const Layout layout : listed) {
      if (CanWorkIn(graph, node, layout)) return layout;
    }
  }
  for (const Edge operand : node.inputs) {
    if (graph.is_constant(operand.node)) continue;
    Layout layout = chosen.Written(graph, operand);
    if (layout == Layout::kChannelsLast && preferred == Layout::kChannelsLast8) layout = preferred;
    layout = NameFor(graph, node, layout);
    const bool is_listed = listed.empty() || std::ranges::count(listed, layout) > 0;
    if (layout != Layout::kPlain && is_listed && CanWorkIn(graph, node, layout)) return layout;
  }
  return Layout::kPlain;
}

}  // namespace

Layout NodeLayouts::Written(const Graph& graph, Edge edge) const {
  const Layout layout = of[edge.node];
  const bool is_plain =
      layout == Layout::kPlain || ChannelMoveOf(graph.node(edge.node)) == ChannelMove::kToBack;
  return is_plain ? Layout::kPlain : AtTensor(graph.type(edge), layout);
}

Layout NodeLayouts::Read(const Graph& graph, NodeId id, size_t index) const {
  const Node& node = graph.node(id);
  if (of[id] == Layout::kPlain || IsWeight(node, index)) return Layout::kPlain;
  if (ChannelMoveOf(node) == ChannelMove::kToFront) return Layout::kPlain;
  return AtTensor(graph.type(node.inputs[index]), of[id]);
}

// Nodes in one layout have one for each tensor between them, but for transposes of images.
bool NodeLayouts::ReadsAsWritten(const Graph& graph, NodeId id, size_t index) const {
  const Node& node = graph.node(id);
  const Edge operand = node.inputs[index];
  if (of[id] == of[operand.node]) {
    const auto moves = [&](NodeId n) { return graph.node(n).op == OpKind::kTranspose; };
    if (of[id] == Layout::kPlain) return true;
    if (!IsWeight(node, index) && !moves(id) && !moves(operand.node)) return true;
  }
  return Read(graph, id, index) == Written(graph, operand);
}

ChannelMove ChannelMoveOf(const Node& node) {
  if (node.op != OpKind::kTranspose) return ChannelMove::kNone;
  const Ints& perm = node.IntList("perm");
  if (perm == Ints{0, 2, 3, 1}) return ChannelMove::kToBack;
  return perm == Ints{0, 3, 1, 2} ? ChannelMove::kToFront : ChannelMove::kNone;
}

bool GivesZeroForZero(const Node& node) {
  if (node.op == OpKind::kClip) return node.Float("min") <= 0 && node.Float("max") >= 0;
  return Has(node.op, kZeroToZero);
}

bool IsPadded(const Graph& graph, const Node& node) {
  const auto pads = [](const TensorType& type) {
    return CanHave(type, Layout::kChannelsLast8) &&
           !HasSameBytes(type, Layout::kChannelsLast8, Layout::kChannelsLast);
  };
  return std::ranges::any_of(node.outputs, pads) ||
         std::ranges::any_of(node.inputs, [&](Edge operand) {
           return !graph.is_constant(operand.node) && pads(graph.type(operand));
         });
}

HomePatterns FindHomePatterns(const DeviceSpec& spec) {
  HomePatterns home(kOpKindCount, nullptr);
  for (const GroupPattern& pattern : spec.patterns) {
    if (pattern.steps.empty() || pattern.steps[0].form != ConvolutionForm::kAny) continue;
    for (const OpKind op : pattern.steps[0].ops) {
      const GroupPattern*& first = home[static_cast<size_t>(op)];
      if (first == nullptr) first = &pattern;
    }
  }
  return home;
}

NodeLayouts ChooseLayouts(const Graph& graph, const HomePatterns& home,
                          const std::vector<Layout>& preferred) {
  NodeLayouts layouts;
  layouts.of.assign(graph.size(), Layout::kPlain);
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    const GroupPattern* pattern = home[static_cast<size_t>(node.op)];
    if (pattern == nullptr || graph.is_constant(id) || node.outputs.empty()) continue;
    layouts.of[id] = node.op == OpKind::kTranspose
                         ? OfTranspose(graph, id, *pattern, layouts, preferred[id])
                         : Choose(graph, node, *pattern, layouts, preferred[id]);
  }
  return layouts;
}

}  // namespace ag
