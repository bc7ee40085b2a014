// A copy of a graph, node by node, into a new builder; the base of clean-up passes. A pass visits
// the nodes in order. It copies a node, or maps the node's outputs to edges that it made. Used
// once; one thread at a time.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"

namespace ag {

class Rebuild {
 public:
  // Declares the inputs of `graph`, which must outlive this.
  explicit Rebuild(const Graph& graph);

  GraphBuilder& builder() { return builder_; }

  // Returns the new edge of an old one. REQUIRES (New): mapped before.
  Edge New(Edge old) const;
  std::vector<Edge> NewOperands(NodeId old) const;
  void Map(Edge old, Edge made);

  // Adds a copy of a node, not an Input, with these operands, and maps its outputs to the copy.
  StatusOr<NodeId> Copy(NodeId old, std::span<const Edge> operands);
  StatusOr<NodeId> Copy(NodeId old) { return Copy(old, NewOperands(old)); }

  void DeclareOutputs();  // Declares the outputs of the old graph.
  // Calls DeclareOutputs and returns Build's graph.
  StatusOr<Graph> Finish();

 private:
  const Graph& graph_;
  GraphBuilder builder_;
  std::vector<absl::InlinedVector<Edge, 1>> made_;  // By old node and output; node -1: not mapped.
};

}  // namespace ag
