#include "graph/passes/rebuild.h"

namespace ag {

Rebuild::Rebuild(const Graph& graph) : graph_(graph), made_(graph.nodes().size()) {
  for (size_t i = 0; i < made_.size(); ++i) {
    made_[i].resize(graph.nodes()[i].outputs.size());
  }
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const Edge old{graph.inputs()[i], 0};
    Map(old, builder_.Input(graph.input_name(i), graph.type(old)));
  }
}

Edge Rebuild::New(Edge old) const {
  const Edge made = made_[old.node][static_cast<size_t>(old.output)];
  AG_CHECK(made.node >= 0);
  return made;
}

std::vector<Edge> Rebuild::NewOperands(NodeId old) const {
  std::vector<Edge> operands;
  for (const Edge& e : graph_.node(old).inputs) operands.push_back(New(e));
  return operands;
}

void Rebuild::Map(Edge old, Edge made) { made_[old.node][static_cast<size_t>(old.output)] = made; }

StatusOr<NodeId> Rebuild::Copy(NodeId old, std::span<const Edge> operands) {
  const Node& node = graph_.node(old);
  AG_LET(const NodeId id, builder_.AddCopy(node, operands));
  for (int32_t i = 0; i < static_cast<int32_t>(node.outputs.size()); ++i) Map({old, i}, {id, i});
  return id;
}

void Rebuild::DeclareOutputs() {
  for (const GraphOutput& output : graph_.outputs()) {
    builder_.Output(New(output.edge), output.name);
  }
}

StatusOr<Graph> Rebuild::Finish() {
  DeclareOutputs();
  return builder_.Build();
}

}  // namespace ag
