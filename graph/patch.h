// One change of a graph, as an overlay: added nodes and replaced edges. The hash of the changed
// graph is known before that graph is built. A trial of one change costs little more than the nodes
// that it adds; only Build is linear in the graph. One thread at a time.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "graph/structure_hash.h"

namespace ag {

// Has the meaning of GraphBuilder(graph) with the same calls.
class GraphPatch {
 public:
  explicit GraphPatch(const Graph& graph);

  // Removes all added nodes and replacements.
  void Clear();

  const Graph& base() const { return base_; }
  // Nodes of the graph keep their ids; added ones have the ids from base().size() on.
  const Node& node(NodeId id) const;
  const TensorType& type(Edge e) const;
  int size() const { return base_.size() + static_cast<int>(added_.size()); }

  // As in GraphBuilder. REQUIRES: no input of Add was replaced.
  Edge Constant(TensorType type, const Digest& digest, std::string_view bytes = {});
  StatusOr<NodeId> Add(OpKind op, std::span<const Edge> inputs, Attributes attributes = {});
  Status Replace(Edge from, Edge to);

  // Returns the edge that a reader of `e` reads after the replacements.
  Edge Resolve(Edge e) const { return IsReplaced(e.node) ? ReplacementOf(e) : e; }
  std::span<const NodeId> replaced_nodes() const { return replaced_nodes_; }  // Each once.

  // Returns HashOfStructure(*Build()). Hashes only the nodes above the replaced edges again.
  // kInvalidArgument: a cycle.
  StatusOr<StructureHash> Hash();

  // Returns the changed graph. Sets place[i] to the id in it of node i of base() or of the patch;
  // -1: the node is dead. kInvalidArgument: a cycle.
  StatusOr<Graph> Build(std::vector<NodeId>* place = nullptr) const;

 private:
  class Layout;
  struct Replacement {
    Edge from;
    Edge to;
  };

  bool IsReplaced(NodeId id) const { return is_replaced_[id] != 0; }
  NodeId Append(Node node);
  Edge ReplacementOf(Edge e) const;
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
  std::vector<uint8_t> is_replaced_;  // By node of the patch.

  std::vector<NodeId> readers_;  // Nodes with operands, ascending.

  // By node of the base; own_ and base_hash_ are filled on first use.
  std::vector<StructureHash> own_;  // Node::hash with the places of inputs and of opaque nodes.
  std::vector<StructureHash> base_hash_;
  std::vector<StructureHash> hash_;  // By node of the patch; valid for changed and added ones.
  enum State : uint8_t { kAsBefore, kChanged, kOpen, kDone };
  std::vector<State> state_;     // By node of the patch.
  std::vector<NodeId> changed_;  // Nodes of the base, ascending.
};

}  // namespace ag
