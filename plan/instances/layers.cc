#include "plan/instances/layers.h"

#include <algorithm>
#include <map>
#include <set>

#include "plan/fusion/group_problem.h"
#include "plan/plan.h"

namespace ag {
namespace {

bool Joins(const Node& node) { return Has(node.op, kElementwise) || node.op == OpKind::kReshape; }

// Returns the layer that the node joins, or -1.
int LayerToJoin(const LayeredGraph& layered, NodeId id) {
  const Graph& graph = layered.graph;
  const Node& node = graph.node(id);
  if (!Joins(node)) return -1;
  NodeId latest = -1;
  for (const Edge input : node.inputs) {
    if (layered.layer_of[input.node] >= 0) latest = std::max(latest, input.node);
  }
  if (latest < 0) return -1;
  const Node& producer = graph.node(latest);
  const Edge result{latest, 0};
  const bool alone = producer.outputs.size() == 1 && graph.has_one_use(result);
  return alone ? layered.layer_of[latest] : -1;
}

int64_t ConstantBytes(const LayeredGraph& layered, const Node& node, size_t operand) {
  const int64_t bytes = layered.Bytes(node.inputs[operand]);
  if (node.op != OpKind::kGather || operand != 0) return bytes;
  return std::min(bytes, StoredType(node.outputs[0], layered.precision).Bytes());
}

void AddWork(LayeredGraph& layered, NodeId id, Layer& layer) {
  const Node& node = layered.graph.node(id);
  const double flops = FlopsOf(layered.graph, node);
  (Has(node.op, kContraction) ? layer.matrix_flops : layer.vector_flops) += flops;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (layered.graph.is_constant(node.inputs[i].node)) {
      layer.weight_bytes += ConstantBytes(layered, node, i);
    }
  }
}

// An element-wise operator may write over an operand of its size that is no input of the graph.
Edge InPlaceOf(const LayeredGraph& layered, const Layer& layer) {
  if (!Joins(layered.graph.node(layer.nodes.back()))) return {};
  const int64_t bytes = layered.Bytes({layer.nodes.back(), 0});
  for (const Edge input : layer.inputs) {
    const bool elementwise = std::ranges::all_of(layered.graph.uses(input), [&](const Use& use) {
      return Joins(layered.graph.node(use.node)) ||
             !std::ranges::binary_search(layer.nodes, use.node);
    });
    if (elementwise && layered.layer_of[input.node] >= 0 && layered.Bytes(input) == bytes) {
      return input;
    }
  }
  return {};
}

void FillEnds(LayeredGraph& layered, Layer& layer) {
  const Graph& graph = layered.graph;
  std::set<Edge> inputs;
  for (const NodeId id : layer.nodes) {
    for (const Edge input : graph.node(id).inputs) {
      const bool inside = std::ranges::binary_search(layer.nodes, input.node);
      if (!inside && !graph.is_constant(input.node)) inputs.insert(input);
    }
    AddWork(layered, id, layer);
  }
  layer.inputs.assign(inputs.begin(), inputs.end());
  const NodeId last = layer.nodes.back();
  for (int32_t i = 0; i < static_cast<int32_t>(graph.node(last).outputs.size()); ++i) {
    const Edge output{last, i};
    if (!graph.uses(output).empty() || graph.is_output(output)) layer.outputs.push_back(output);
  }
  layer.moves_nothing = std::ranges::all_of(
      layer.nodes, [&](NodeId id) { return graph.node(id).op == OpKind::kReshape; });
}

}  // namespace

int64_t LayeredGraph::Bytes(Edge edge) const {
  return StoredType(graph.type(edge), precision).Bytes();
}

LayeredGraph FormLayers(const Graph& graph, const std::string& precision) {
  LayeredGraph layered{graph, precision, {}, std::vector<int>(graph.size(), -1)};
  std::vector<Layer> made;
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (graph.is_constant(id) || graph.node(id).op == OpKind::kInput) continue;
    int layer = LayerToJoin(layered, id);
    if (layer < 0) {
      layer = static_cast<int>(made.size());
      made.emplace_back();
    }
    made[layer].nodes.push_back(id);
    layered.layer_of[id] = layer;
  }
  // A layer reads only what earlier nodes than its last one wrote.
  std::ranges::sort(made, {}, [](const Layer& layer) { return layer.nodes.back(); });
  layered.layers = std::move(made);
  for (int i = 0; i < static_cast<int>(layered.layers.size()); ++i) {
    for (const NodeId id : layered.layers[i].nodes) layered.layer_of[id] = i;
  }
  for (Layer& layer : layered.layers) {
    FillEnds(layered, layer);
    layer.in_place = InPlaceOf(layered, layer);
  }
  return layered;
}

int64_t PeakBytes(const LayeredGraph& layered, const std::vector<int>& layers) {
  const Graph& graph = layered.graph;
  constexpr int kEnd = std::numeric_limits<int>::max();
  std::map<Edge, int> last_use;  // Position in `layers`.
  std::set<Edge> made;
  int64_t live = 0, peak = 0;
  for (int i = 0; i < static_cast<int>(layers.size()); ++i) {
    const Layer& layer = layered.layers[layers[i]];
    for (const Edge input : layer.inputs) {
      if (!made.contains(input) && !last_use.contains(input)) live += layered.Bytes(input);
      last_use[input] = i;
    }
    made.insert(layer.outputs.begin(), layer.outputs.end());
  }
  for (const Edge output : made) {
    const bool leaves =
        graph.is_output(output) || std::ranges::any_of(graph.uses(output), [&](const Use& use) {
          return !std::ranges::binary_search(layers, layered.layer_of[use.node]);
        });
    if (leaves) last_use[output] = kEnd;
  }
  for (int i = 0; i < static_cast<int>(layers.size()); ++i) {
    const Layer& layer = layered.layers[layers[i]];
    int64_t made_bytes = 0;
    for (const Edge output : layer.outputs) made_bytes += layered.Bytes(output);
    peak = std::max(peak, live + (layer.moves_nothing ? 0 : made_bytes));
    live += made_bytes;
    for (const Edge input : layer.inputs) {
      if (last_use[input] == i) live -= layered.Bytes(input);
    }
  }
  return peak;
}

}  // namespace ag
