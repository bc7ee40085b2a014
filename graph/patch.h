// One change of a graph, laid over it: nodes are added and edges replaced, and what comes of it has
// a hash before it is made. Trying many changes of one graph costs little more than the nodes that
// each adds; only Build is linear in the graph.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "graph/structure_hash.h"

namespace ag {

// Means what GraphBuilder(graph) with the same calls means. Not thread-safe.
class GraphPatch {
 public:
  explicit GraphPatch(const Graph& graph);

  // Forgets what was added and replaced.
  void Clear();

  const Graph& base() const { return base_; }
  // The graph's nodes keep their ids; added ones are numbered from base().size().
  const Node& node(NodeId id) const;
  const TensorType& type(Edge e) const;
  int size() const { return base_.size() + static_cast<int>(added_.size()); }

  // As GraphBuilder's, but that all is added before anything is replaced.
  Edge Constant(TensorType type, const Digest& digest, std::string_view bytes = {});
  StatusOr<NodeId> Add(OpKind op, std::span<const Edge> inputs, Attributes attributes = {});
  Status Replace(Edge from, Edge to);

  // What a reader of `e` reads.
  Edge Resolve(Edge e) const;
  std::span<const NodeId> replaced_nodes() const { return replaced_nodes_; }  // Each once.

  // HashOfStructure(*Build()), from what changed: nodes above the replaced edges are hashed again,
  // the others are looked at briefly. kInvalidArgument: a cycle.
  StatusOr<StructureHash> Hash();

  // The graph. place[i], when asked for: where node i of base() or of the patch stands in it, -1
  // when it is dead. kInvalidArgument: a cycle.
  StatusOr<Graph> Build(std::vector<NodeId>* place = nullptr) const;

 private:
  class Layout;
  struct Replacement {
    Edge from;
    Edge to;
  };

  void HashBase();
  void MarkChanged();
  void HashIfReady(NodeId id, const Node& node);
  Status HashBelow(NodeId root);
  StructureHash HashOfEdge(Edge e) const;
  enum class Edges : uint8_t { kOriginal, kPatched };
  StructureHash HashOfOperands(const Node& node, StructureHash own, Edges edges) const;

  const Graph base_;
  std::deque<Node> added_;  // A deque, so that node() references stay valid.
  std::vector<Replacement> replacements_;
  std::vector<NodeId> replaced_nodes_;
  std::vector<uint8_t> is_replaced_;  // By node of the base.

  // Operands of the base's nodes, flat: those of node n are operands_[begin_[n] .. begin_[n + 1]).
  std::vector<int32_t> begin_;
  std::vector<Edge> operands_;
  std::vector<NodeId> readers_;  // Nodes with operands, ascending.

  // By node of the base; alone_ and base_hash_ are made on first use.
  std::vector<StructureHash> alone_;
  std::vector<StructureHash> base_hash_;
  std::vector<StructureHash> hash_;  // By node of the patch; of the changed and added ones.
  enum State : uint8_t { kAsBefore, kChanged, kOpen, kDone };
  std::vector<State> state_;     // By node of the patch.
  std::vector<NodeId> changed_;  // Of the base, ascending.
};

}  // namespace ag
