// Rebuilds a graph node by node into a new builder: what clean-up passes share. A pass visits the
// nodes in order and for each either copies it or maps its outputs to edges that it made itself.
// One use; not thread-safe.
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

  // Edges of the old graph in the new one. REQUIRES (New): mapped before.
  Edge New(Edge old) const;
  std::vector<Edge> NewOperands(NodeId old) const;
  void Map(Edge old, Edge made);

  // Adds a copy of a node that is no Input, with these operands, and maps its outputs to it.
  StatusOr<NodeId> Copy(NodeId old, std::span<const Edge> operands);
  StatusOr<NodeId> Copy(NodeId old) { return Copy(old, NewOperands(old)); }

  void DeclareOutputs();  // The old graph's.
  // DeclareOutputs and Build.
  StatusOr<Graph> Finish();

 private:
  const Graph& graph_;
  GraphBuilder builder_;
  std::vector<absl::InlinedVector<Edge, 1>> made_;  // By old node and output; node -1: not mapped.
};

// Adds a copy of `node`, no Input, with these operands to `builder`.
StatusOr<NodeId> AddCopy(const Node& node, std::span<const Edge> operands, GraphBuilder* builder);

}  // namespace ag
