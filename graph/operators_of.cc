#include "graph/operators_of.h"

namespace ag {

std::vector<NodeId> OperatorsOf(const Graph& graph) {
  std::vector<NodeId> operators;
  operators.reserve(graph.nodes().size());
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (graph.node(id).op != OpKind::kInput && !graph.is_constant(id)) operators.push_back(id);
  }
  return operators;
}

}  // namespace ag
