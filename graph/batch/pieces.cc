#include "graph/batch/pieces.h"
#include "graph/operators_of.h"

#include <algorithm>
#include <map>
#include <set>

namespace ag {
namespace {

class PieceMaker {
 public:
  PieceMaker(const Graph& graph, std::span<const NodeId> nodes) : graph_(graph), nodes_(nodes) {}

  GraphPiece Run() {
    FindEnds();
    for (const Edge edge : piece_.inputs)
      copies_[edge] = builder_.Input(NameOf(edge), TypeOf(edge));
    for (const NodeId id : nodes_) Copy(id);
    for (size_t i = 0; i < piece_.outputs.size(); ++i) {
      builder_.Output(copies_.at(piece_.outputs[i]), names_[i]);
    }
    StatusOr<Graph> graph = builder_.Build();
    AG_CHECK(graph.ok());  // Its nodes stand in a graph.
    piece_.graph = *std::move(graph);
    return std::move(piece_);
  }

 private:
  bool IsInside(NodeId id) const { return std::ranges::binary_search(nodes_, id); }
  const TensorType& TypeOf(Edge edge) const { return graph_.type(edge); }

  std::string NameOf(Edge edge) const {
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      if (graph_.inputs()[i] == edge.node) return graph_.input_name(i);
    }
    return fmt::format("{}:{}", edge.node, edge.output);
  }

  void FindEnds() {
    std::set<Edge> inputs;
    for (const GraphOutput& output : graph_.outputs()) {
      if (!IsInside(output.edge.node)) continue;
      piece_.outputs.push_back(output.edge);
      names_.push_back(output.name);
    }
    for (const NodeId id : nodes_) {
      const Node& node = graph_.node(id);
      for (const Edge edge : node.inputs) {
        if (!IsInside(edge.node) && !graph_.is_constant(edge.node)) inputs.insert(edge);
      }
      for (int32_t i = 0; i < static_cast<int32_t>(node.outputs.size()); ++i) {
        const Edge edge{id, i};
        const auto is_outside = [&](const Use& use) { return !IsInside(use.node); };
        if (graph_.is_output(edge) || !std::ranges::any_of(graph_.uses(edge), is_outside)) continue;
        piece_.outputs.push_back(edge);
        names_.push_back(NameOf(edge));
      }
    }
    piece_.inputs.assign(inputs.begin(), inputs.end());
  }

  void Copy(NodeId id) {
    const Node& node = graph_.node(id);
    std::vector<Edge> operands;
    for (const Edge edge : node.inputs) {
      if (!copies_.contains(edge)) CopyConstant(edge.node);
      operands.push_back(copies_.at(edge));
    }
    const StatusOr<NodeId> copy = builder_.AddCopy(node, operands);
    AG_CHECK(copy.ok());
    for (int32_t i = 0; i < static_cast<int32_t>(node.outputs.size()); ++i) {
      copies_[{id, i}] = {*copy, i};
    }
  }

  // A recipe may be long, but its operands are few and none of them is in the piece.
  void CopyConstant(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.op != OpKind::kConstant) return Copy(id);
    copies_[{id, 0}] =
        builder_.Constant(node.outputs[0], node.constant->digest, node.constant->inline_bytes);
  }

  const Graph& graph_;
  const std::span<const NodeId> nodes_;
  GraphPiece piece_;
  std::vector<std::string> names_;  // Of the outputs.
  GraphBuilder builder_;
  std::map<Edge, Edge> copies_;
};

}  // namespace

GraphPiece PieceOf(const Graph& graph, std::span<const NodeId> nodes) {
  if (!std::ranges::equal(nodes, OperatorsOf(graph))) return PieceMaker(graph, nodes).Run();
  GraphPiece whole{.graph = graph};
  for (const NodeId id : graph.inputs()) whole.inputs.push_back({id, 0});
  for (const GraphOutput& output : graph.outputs()) whole.outputs.push_back(output.edge);
  return whole;
}

}  // namespace ag
