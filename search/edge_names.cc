#include "search/edge_names.h"

#include <algorithm>

namespace ag {
namespace {

// The kinds of leaves of which only the type counts, and of inputs.
constexpr uint64_t kWeight = 1, kInput = 2;

StructureHash NameOfType(const TensorType& type, uint64_t kind) {
  StructureHash name{kind, static_cast<uint64_t>(type.dtype)};
  for (const int64_t size : type.shape) name = MixIn(name, {static_cast<uint64_t>(size), 0});
  return name;
}

// The names of the inputs, by node.
std::vector<std::optional<StructureHash>> InputNames(const Graph& graph,
                                                     std::span<const StructureHash> inputs) {
  AG_CHECK(inputs.empty() || inputs.size() == graph.inputs().size());
  std::vector<std::optional<StructureHash>> names(static_cast<size_t>(graph.size()));
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const NodeId id = graph.inputs()[i];
    names[id] = inputs.empty() ? MixIn(graph.node(id).hash, {kInput, i}) : inputs[i];
  }
  return names;
}

}  // namespace

EdgeNames::EdgeNames(const Graph& graph, Leaf leaf)
    : graph_(&graph), leaf_(std::move(leaf)), nodes_(static_cast<size_t>(graph.size())) {}

EdgeNames EdgeNames::Exact(const Graph& graph, std::span<const StructureHash> inputs) {
  EdgeNames names(graph, [inputs = InputNames(graph, inputs)](Edge e) { return inputs[e.node]; });
  names.NameAll();
  return names;
}

EdgeNames EdgeNames::Blind(const Graph& graph) {
  EdgeNames names(graph, [&graph, inputs = InputNames(graph, {})](Edge e) {
    const Node& node = graph.node(e.node);
    return node.op == OpKind::kConstant ? WeightName(node) : inputs[e.node];
  });
  names.NameAll();
  return names;
}

// Names operands before what reads them, so that no call goes deep.
void EdgeNames::NameAll() {
  for (NodeId id = 0; id < graph_->size(); ++id) Of(Edge{id, 0});
}

// Always: Of goes only as deep as the longest path between nodes that have no name yet.
StructureHash EdgeNames::Of(Edge edge) {
  if (!nodes_[edge.node]) {
    if (const std::optional<StructureHash> name = leaf_(edge)) return *name;
    const Node& node = graph_->node(edge.node);
    absl::InlinedVector<StructureHash, 4> operands;
    for (const Edge& e : node.inputs) operands.push_back(Of(e));
    if (Has(node.op, kCommutative)) std::ranges::sort(operands);
    StructureHash name = node.hash;
    for (const StructureHash& operand : operands) name = MixIn(name, operand);
    nodes_[edge.node] = name;
  }
  return MixIn(*nodes_[edge.node], {static_cast<uint64_t>(edge.output), 0});
}

std::vector<StructureHash> EdgeNames::Of(std::span<const Edge> edges) {
  std::vector<StructureHash> names;
  for (const Edge& e : edges) names.push_back(Of(e));
  std::ranges::sort(names);
  return names;
}

std::optional<StructureHash> WeightName(const Node& constant) {
  const TensorType& type = constant.outputs[0];
  const bool may_be_read = type.NumElements() == 1 || !IsFloat(type.dtype);
  if (may_be_read && !constant.constant->inline_bytes.empty()) return std::nullopt;
  return NameOfType(type, kWeight);
}

StructureHash InputName(const TensorType& type) { return NameOfType(type, kInput); }

}  // namespace ag
