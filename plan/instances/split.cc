#include "plan/instances/split.h"

#include <algorithm>
#include <tuple>

#include "graph/batch/axis_parts.h"

namespace ag {
namespace {

using Kind = AxisPart::Kind;

// Spreads the cut of one result over the operators of a sub-graph, to producers and to readers.
class Spread {
 public:
  Spread(const Graph& graph, const std::vector<NodeId>& nodes) : graph_(graph), nodes_(nodes) {}

  // Returns the axes of the operators that are cut. Empty: two cuts meet at one operator.
  std::map<NodeId, int> From(int axis) {
    Reach(nodes_.back(), axis);
    while (!todo_.empty() && !conflict_) {
      const NodeId id = todo_.back();
      todo_.pop_back();
      Visit(id, axes_.at(id));
    }
    std::erase_if(axes_, [](const auto& entry) { return entry.second < 0; });
    if (conflict_ || !AreIndependent()) axes_.clear();
    return axes_;
  }

 private:
  bool IsInside(NodeId id) const { return std::ranges::binary_search(nodes_, id); }

  void Reach(NodeId id, int axis) {
    if (!IsInside(id)) return;
    const int kept = CanCut(graph_, id, axis) ? axis : -1;
    const auto [at, fresh] = axes_.emplace(id, kept);
    if (fresh && kept >= 0) todo_.push_back(id);
    if (!fresh && at->second != kept) conflict_ = true;
  }

  void Visit(NodeId id, int axis) {
    const Node& node = graph_.node(id);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const AxisPart part = PartOfOperand(graph_, id, axis, i);
      if (part.kind == Kind::kCut) Reach(node.inputs[i].node, part.axis);
    }
    for (int32_t o = 0; o < static_cast<int32_t>(node.outputs.size()); ++o) {
      for (const Use& use : graph_.uses({id, o})) {
        const std::optional<int> next = ResultAxisOf(graph_, use.node, use.index, axis);
        if (next) Reach(use.node, *next);
      }
    }
  }

  // True when no piece reads all of a result that another piece makes.
  bool AreIndependent() const {
    for (const auto& [id, axis] : axes_) {
      const Node& node = graph_.node(id);
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const auto producer = axes_.find(node.inputs[i].node);
        if (producer == axes_.end()) continue;
        const AxisPart part = PartOfOperand(graph_, id, axis, i);
        if (part.kind != Kind::kCut || part.axis != producer->second) return false;
      }
    }
    return true;
  }

  const Graph& graph_;
  const std::vector<NodeId>& nodes_;
  std::map<NodeId, int> axes_;  // -1: reached by an axis along which it cannot be cut.
  std::vector<NodeId> todo_;
  bool conflict_ = false;
};

// Returns the sizes of all cut tensors along their axes.
std::vector<int64_t> CutExtents(const Graph& graph, const std::map<NodeId, int>& axes) {
  std::vector<int64_t> extents;
  for (const auto& [id, axis] : axes) {
    const Node& node = graph.node(id);
    for (const TensorType& type : node.outputs) extents.push_back(type.shape[axis]);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const AxisPart part = PartOfOperand(graph, id, axis, i);
      if (part.kind == Kind::kCut) extents.push_back(graph.type(node.inputs[i]).shape[part.axis]);
    }
  }
  return extents;
}

}  // namespace

std::vector<int64_t> SplitFactors(int64_t extent) {
  std::vector<int64_t> factors;
  for (int64_t v = 1; v <= std::min<int64_t>(extent, 8); v *= 2) factors.push_back(v);
  for (int64_t v = 9; v <= extent; ++v) factors.push_back(v);
  if (factors.back() < extent) factors.push_back(extent);
  return factors;
}

SplitInfo BestSplit(const LayeredGraph& layered, const std::vector<int>& layers,
                    int64_t buffer_bytes) {
  const Graph& graph = layered.graph;
  std::vector<NodeId> nodes;
  for (const int layer : layers) {
    nodes.insert(nodes.end(), layered.layers[layer].nodes.begin(),
                 layered.layers[layer].nodes.end());
  }
  std::ranges::sort(nodes);
  const int64_t peak = PeakBytes(layered, layers);
  const Shape& result = graph.node(nodes.back()).outputs[0].shape;
  SplitInfo best{.fits = peak <= buffer_bytes};
  bool kept = false;
  for (int axis = 0; axis < static_cast<int>(result.size()); ++axis) {
    SplitInfo split{.axis = axis, .fits = true, .axes = Spread(graph, nodes).From(axis)};
    split.operators_cut = static_cast<int>(split.axes.size());
    if (split.axes.empty()) continue;
    const std::vector<int64_t> extents = CutExtents(graph, split.axes);
    const std::vector<int64_t> factors = SplitFactors(result[axis]);
    const auto factor = std::ranges::find_if(factors, [&](int64_t v) {
      return (peak + v - 1) / v <= buffer_bytes &&
             std::ranges::all_of(extents, [&](int64_t extent) { return extent % v == 0; });
    });
    if (factor == factors.end()) continue;
    split.factor = *factor;
    const auto rank = [](const SplitInfo& s) {
      return std::make_tuple(s.operators_cut, -s.factor, -s.axis);
    };
    if (!kept || rank(split) > rank(best)) best = std::move(split);
    kept = true;
  }
  return best;
}

}  // namespace ag
