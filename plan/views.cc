#include "plan/views.h"

#include <algorithm>
#include <tuple>

#include "graph/shapes.h"
#include "plan/spec/node_layouts.h"

namespace ag {
namespace {

uint64_t KeyOf(const Port& port) {
  return static_cast<uint64_t>(port.edge.node) << 32 |
         static_cast<uint64_t>(port.edge.output) << 8 | static_cast<uint64_t>(port.layout);
}

bool IsDense(OpKind op) {
  return op == OpKind::kReshape || op == OpKind::kTranspose || op == OpKind::kExpand;
}

// Whether the result has the operand's elements in the same order.
bool KeepsOrder(const Graph& graph, const Node& node) {
  if (node.op == OpKind::kReshape) return true;
  const TensorType& in = graph.type(node.inputs[0]);
  if (node.op == OpKind::kExpand) return in.NumElements() == node.outputs[0].NumElements();
  int64_t last = -1;  // A transpose that moves only axes of length 1.
  for (const int64_t axis : node.IntList("perm")) {
    if (in.shape[axis] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

// Whether a transpose of an image gives the same bytes, since the image lies in channels_last.
bool IsMoveOfChannels(const Node& node, Layout in, Layout out) {
  const ChannelMove move = ChannelMoveOf(node);
  if (move == ChannelMove::kToBack) return in == Layout::kChannelsLast && out == Layout::kPlain;
  return move == ChannelMove::kToFront && in == Layout::kPlain && out == Layout::kChannelsLast;
}

// The one axis that a slice with step 1 cuts; -1: the slice is not of this form.
struct Cut {
  int64_t axis = -1;
  int64_t begin = 0;
};
Cut FindCut(const TensorType& in, const Node& node) {
  Cut cut;
  const Ints& axes = node.IntList("axes");
  for (size_t i = 0; i < axes.size(); ++i) {
    if (node.IntList("steps")[i] != 1) return {};
    if (node.outputs[0].shape[axes[i]] == in.shape[axes[i]]) continue;
    if (cut.axis >= 0) return {};
    const int64_t end = node.IntList("ends")[i];
    cut = {axes[i], ResolveSlice(in.shape[axes[i]], node.IntList("starts")[i], end, 1).start};
  }
  return cut;
}

// Whether the tensor has the same bytes in both layouts, or these are two names of one layout.
bool IsAlike(const TensorType& type, Layout a, Layout b) {
  return a == b || (IsChannelsLast(a) && IsChannelsLast(b) && HasSameBytes(type, a, b));
}

}  // namespace

bool ViewForest::IsFree(const Port& port) const { return !homes_.contains(KeyOf(port)); }

bool ViewForest::CanLieInside(const Port& port) const {
  if (graph_.node(port.edge.node).op == OpKind::kInput && port.layout == Layout::kPlain) {
    return false;
  }
  const bool is_output = port.layout == Layout::kPlain && graph_.is_output(port.edge);
  return !is_output && IsFree(port);
}

bool ViewForest::AddAll(std::span<const Home> homes) {
  for (const Home& home : homes) {
    if (home.offset_bytes % alignment_ != 0 || !CanLieInside(home.inner)) return false;
  }
  for (const Home& home : homes) homes_[KeyOf(home.inner)] = home;
  return true;
}

bool ViewForest::AddConcat(const Group& group) {
  const Node& node = graph_.node(group.nodes[0]);
  const Port out = group.outputs[0];
  if (group.inputs.size() != node.inputs.size()) return false;  // Constants, or repeated operands.
  const int64_t axis = node.Int("axis");
  std::vector<Home> homes;
  int64_t begin = 0;
  for (const Port& in : group.inputs) {
    const int64_t size = graph_.type(in.edge).shape[axis];
    int64_t offset = 0;
    if (!IsAlike(graph_.type(in.edge), in.layout, out.layout) ||
        !IsViewAlongAxis(StoredTypeOf(out.edge), out.layout, axis, begin, size, &offset)) {
      return false;
    }
    homes.push_back({in, out, offset});
    begin += size;
  }
  return AddAll(homes);
}

bool ViewForest::AddCut(const Group& group) {
  const Node& node = graph_.node(group.nodes[0]);
  if (group.inputs.size() != 1) return false;
  const Port in = group.inputs[0];
  const TensorType& whole = graph_.type(in.edge);
  const bool is_split = node.op == OpKind::kSplit;
  const Cut cut = is_split ? Cut{node.Int("axis"), 0} : FindCut(whole, node);
  if (cut.axis < 0) return false;
  std::vector<Home> homes;
  for (const Port& out : group.outputs) {
    int64_t begin = cut.begin;
    for (int32_t i = 0; i < out.edge.output; ++i) begin += node.outputs[i].shape[cut.axis];
    const int64_t size = node.outputs[out.edge.output].shape[cut.axis];
    int64_t offset = 0;
    if (!IsAlike(graph_.type(out.edge), out.layout, in.layout) ||
        !IsViewAlongAxis(StoredTypeOf(in.edge), in.layout, cut.axis, begin, size, &offset)) {
      return false;
    }
    homes.push_back({out, in, offset});
  }
  return AddAll(homes);
}

bool ViewForest::AddDense(const Port& in, const Port& out) {
  const Home down{out, in, 0};
  const Home up{in, out, 0};
  return AddAll({&down, 1}) || AddAll({&up, 1});
}

bool ViewForest::TryAdd(const Group& group) {
  if (group.inputs.empty() || group.outputs.empty()) return false;
  const Port& in = group.inputs[0];
  const Port& out = group.outputs[0];
  if (group.nodes.empty()) {
    const bool is_reorder = in.edge == out.edge && in.layout != out.layout;
    return is_reorder && HasSameBytes(graph_.type(in.edge), in.layout, out.layout) &&
           AddDense(in, out);
  }
  if (group.nodes.size() != 1) return false;
  const Node& node = graph_.node(group.nodes[0]);
  if (node.op == OpKind::kConcat) return AddConcat(group);
  if (node.op == OpKind::kSplit || node.op == OpKind::kSlice) return AddCut(group);
  const bool is_plain = in.layout == Layout::kPlain && out.layout == Layout::kPlain;
  if (IsMoveOfChannels(node, in.layout, out.layout)) return AddDense(in, out);
  return IsDense(node.op) && is_plain && KeepsOrder(graph_, node) && AddDense(in, out);
}

ViewForest::Location ViewForest::Find(const Port& port) const {
  Location location{port, 0};
  for (auto it = homes_.find(KeyOf(port)); it != homes_.end();
       it = homes_.find(KeyOf(location.root))) {
    location.root = it->second.outer;
    location.offset_bytes += it->second.offset_bytes;
  }
  return location;
}

std::vector<int> ViewOrder(const Graph& graph, const std::vector<Group>& groups) {
  using Rank = std::tuple<bool, int64_t, NodeId, Layout, int>;
  std::vector<Rank> ranks;
  for (size_t i = 0; i < groups.size(); ++i) {
    const Group& group = groups[i];
    if (group.outputs.empty() || group.inputs.empty()) continue;
    const bool dense = group.nodes.empty() || IsDense(graph.node(group.nodes[0]).op);
    int64_t bytes = 0;
    if (!dense) {
      for (const Port& port : group.outputs)
        bytes += LayoutBytes(graph.type(port.edge), port.layout);
    }
    ranks.push_back(
        {dense, -bytes, -group.outputs[0].edge.node, group.outputs[0].layout, static_cast<int>(i)});
  }
  std::ranges::sort(ranks);
  std::vector<int> order;
  for (const Rank& rank : ranks) order.push_back(std::get<4>(rank));
  return order;
}

}  // namespace ag
