#include "zoo/pieces.h"

#include <algorithm>
#include <string>

namespace ag {

bool RunsHere(const Graph& graph, NodeId id) {
  return !Has(graph.node(id).op, kLeaf) && !graph.is_constant(id);
}

int Operators(const Graph& graph) {
  int count = 0;
  for (NodeId id = 0; id < graph.size(); ++id) count += RunsHere(graph, id) ? 1 : 0;
  return count;
}

StatusOr<Graph> FirstNodes(const Graph& graph, int nodes) {
  GraphBuilder builder(graph);
  builder.ForgetOutputs();
  const NodeId end = std::min(graph.size(), nodes);
  int outputs = 0;
  for (NodeId id = 0; id < end; ++id) {
    if (!RunsHere(graph, id)) continue;
    for (int32_t o = 0; o < static_cast<int32_t>(graph.node(id).outputs.size()); ++o) {
      const auto uses = graph.uses({id, o});
      const bool is_read =
          std::any_of(uses.begin(), uses.end(), [&](const Use& use) { return use.node < end; });
      if (!is_read) builder.Output({id, o}, "o" + std::to_string(outputs++));
    }
  }
  return builder.Build();
}

StatusOr<Graph> FirstOperators(const Graph& graph, int operators) {
  int nodes = 0;
  for (int found = 0; nodes < graph.size() && found < operators; ++nodes) {
    found += RunsHere(graph, nodes) ? 1 : 0;
  }
  return FirstNodes(graph, nodes);
}

}  // namespace ag
