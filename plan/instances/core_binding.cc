#include "plan/instances/core_binding.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "graph/batch/axis_parts.h"

namespace ag {
namespace {

// The axes from the outermost to the innermost in memory.
std::vector<int> AxesInMemory(size_t rank, Layout layout) {
  std::vector<int> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (rank == 4 && layout == Layout::kChannelsLast) axes = {0, 2, 3, 1};
  return axes;
}

// The shape of a node's results in one instance.
Shape InstanceShape(const LayeredGraph& layered, const SubGraph& sub, NodeId id) {
  Shape shape = layered.graph.node(id).outputs[0].shape;
  const auto cut = sub.split.axes.find(id);
  if (cut != sub.split.axes.end()) shape[cut->second] /= sub.split.factor;
  return shape;
}

// Returns the binding of an operand by which each core reads what it has. Nothing: there is none.
std::optional<Binding> WantedOf(const Graph& graph, NodeId reader, size_t operand,
                                const Binding& binding) {
  Binding wanted(graph.type(graph.node(reader).inputs[operand]).shape.size(), 1);
  for (int axis = 0; axis < static_cast<int>(binding.size()); ++axis) {
    if (binding[axis] == 1) continue;
    const AxisPart part = PartOfOperand(graph, reader, axis, operand);
    if (part.kind != AxisPart::Kind::kCut) return std::nullopt;
    wanted[part.axis] *= binding[axis];
  }
  return wanted;
}

bool Divides(const Binding& binding, const Shape& shape) {
  for (size_t i = 0; i < binding.size(); ++i) {
    if (shape[i] % binding[i] != 0) return false;
  }
  return true;
}

}  // namespace

Binding PlainBinding(const Shape& shape, int cores, Layout layout) {
  Binding binding(shape.size(), 1);
  for (const int axis : AxesInMemory(shape.size(), layout)) {
    for (int factor = cores; factor > 1; --factor) {
      if (cores % factor != 0 || shape[axis] % factor != 0) continue;
      binding[axis] = factor;
      cores /= factor;
      break;
    }
  }
  return binding;
}

CoreBindings BindCores(const LayeredGraph& layered, const SubGraph& sub, int cores, Layout images) {
  const Graph& graph = layered.graph;
  std::vector<NodeId> nodes;
  for (const int layer : sub.layers) {
    const std::vector<NodeId>& own = layered.layers[layer].nodes;
    nodes.insert(nodes.end(), own.begin(), own.end());
  }
  std::ranges::sort(nodes);
  CoreBindings bindings;
  for (auto id = nodes.rbegin(); id != nodes.rend(); ++id) {
    const Shape shape = InstanceShape(layered, sub, *id);
    const Binding binding =
        bindings.of.emplace(*id, PlainBinding(shape, cores, images)).first->second;
    const Node& node = graph.node(*id);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const NodeId producer = node.inputs[i].node;
      if (!std::ranges::binary_search(nodes, producer)) continue;
      const std::optional<Binding> wanted = WantedOf(graph, *id, i, binding);
      const bool can = wanted && Divides(*wanted, InstanceShape(layered, sub, producer));
      const auto known = can ? bindings.of.emplace(producer, *wanted).first : bindings.of.end();
      if (can && known->second == *wanted) continue;
      bindings.global.insert(node.inputs[i]);
      ++bindings.redistributions;
    }
  }
  for (const int layer : sub.layers) {
    for (const Edge output : layered.layers[layer].outputs) {
      const bool leaves = std::ranges::any_of(graph.uses(output), [&](const Use& use) {
        return !std::ranges::binary_search(nodes, use.node);
      });
      bindings.copies += leaves ? 1 : 0;
    }
  }
  return bindings;
}

}  // namespace ag
