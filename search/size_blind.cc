#include "search/size_blind.h"

#include <algorithm>
#include <map>

#include "graph/passes/rebuild.h"
#include "graph/size_attributes.h"
#include "graph/structure_hash.h"

namespace ag {
namespace {

// Returns a hash of the node without its operands and sizes.
uint64_t NameAlone(const Node& node, bool is_varying, bool loose) {
  if (node.op == OpKind::kConstant && !is_varying) return HashOfNodeAlone(node).a;
  uint64_t hash = Mix(static_cast<uint64_t>(node.op));
  if (node.op == OpKind::kConstant)
    return MixIn(hash, static_cast<uint64_t>(node.outputs[0].dtype));
  Node kept = node;
  Attributes attributes;
  for (const auto& [name, value] : node.attributes->items()) {
    // Axes move with what is passed over.
    const bool moves = name == "axis" || name == "axes";
    if (!HoldsSizes(node.op, name) && !(loose && moves)) attributes.Set(name, value);
  }
  kept.SetFacts({std::make_shared<const Attributes>(std::move(attributes)),
                 Has(node.op, kBarrier) ? TensorTypes() : node.facts->outputs,
                 node.facts->constant});
  return MixIn(hash, HashOfNodeAlone(kept).a);
}

bool IsPassedOver(OpKind op) {
  return op == OpKind::kReshape || op == OpKind::kExpand || op == OpKind::kTranspose;
}

}  // namespace

SizeBlind::SizeBlind(std::span<const Graph> graphs) {
  std::map<Constant, size_t, Less> counts;
  for (const Graph& graph : graphs) {
    std::set<Constant, Less> constants;
    for (const Node& node : graph.nodes()) {
      if (node.op == OpKind::kConstant) constants.insert(ConstantAt(node));
    }
    for (const Constant& constant : constants) ++counts[constant];
  }
  for (const auto& [constant, count] : counts) {
    if (count != graphs.size()) varying_.insert(constant);
  }
}

std::vector<uint64_t> SizeBlind::NamesOf(const Graph& graph, bool loose) const {
  std::vector<uint64_t> names(static_cast<size_t>(graph.size()));
  for (size_t i = 0; i < graph.inputs().size(); ++i) names[graph.inputs()[i]] = Mix(i + 1);
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (node.op == OpKind::kInput) continue;
    if (loose && IsPassedOver(node.op)) {
      names[id] = MixIn(names[node.inputs[0].node], static_cast<uint64_t>(node.inputs[0].output));
      if (node.inputs[0].output == 0) names[id] = names[node.inputs[0].node];
      continue;
    }
    const bool is_varying = node.op == OpKind::kConstant && varying_.contains(ConstantAt(node));
    uint64_t hash = NameAlone(node, is_varying, loose), sum = 0;
    for (const Edge& e : node.inputs) {
      const uint64_t operand = MixIn(names[e.node], static_cast<uint64_t>(e.output));
      sum += Mix(operand);  // In any order.
      hash = Has(node.op, kCommutative) ? hash : MixIn(hash, operand);
    }
    names[id] = MixIn(hash, sum);
  }
  return names;
}

StatusOr<Graph> SizeBlind::Ordered(const Graph& graph) const {
  const std::vector<uint64_t> names = Names(graph);
  Rebuild rebuild(graph);
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (node.op == OpKind::kInput) continue;
    absl::InlinedVector<Edge, 3> operands = node.inputs;
    if (Has(node.op, kCommutative)) {
      std::ranges::stable_sort(operands, {}, [&](const Edge& e) {
        return std::tuple(graph.is_constant(e.node), names[e.node], e.output);
      });
    }
    std::vector<Edge> made;
    for (const Edge& e : operands) made.push_back(rebuild.New(e));
    AG_TRY(rebuild.Copy(id, made));
  }
  return rebuild.Finish();
}

}  // namespace ag
