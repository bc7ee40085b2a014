#include "graph/passes/clean_up.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "graph/hash.h"

namespace ag {
namespace {

// Merges equal nodes in one pass over the nodes in order. Nodes with equal keys are compared in
// full; a key is made of the node itself and of the nodes that its operands became. hashes_ holds
// for each node a hash of the structure below it, which decides the order of operands: it depends
// neither on merging nor on the order of nodes, else sorting operands would change the order of
// nodes, and that the next sorting. So a second pass finds nothing. The graph is changed through a
// builder, which begins where something changes: most graphs have nothing to merge.
class Deduper {
 public:
  explicit Deduper(const Graph& graph)
      : graph_(graph),
        hashes_(static_cast<size_t>(graph.size())),
        keys_(hashes_.size()),
        made_(std::bit_ceil(2 * hashes_.size() + 1), -1) {}

  StatusOr<Graph> Run(std::vector<NodeId>* place) {
    for (size_t i = 0; i < graph_.inputs().size(); ++i) hashes_[graph_.inputs()[i]] = Mix(i + 1);
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (graph_.node(id).op != OpKind::kInput) AG_TRY(Visit(id));
    }
    if (!builder_) return graph_;
    return builder_->Build(place);
  }

 private:
  uint64_t HashOfEdge(Edge e) const {
    return MixIn(hashes_[e.node], static_cast<uint64_t>(e.output));
  }

  using Edges = absl::InlinedVector<Edge, 3>;

  // Returns the operands; for a commutative operator constants last, then by the hash of their
  // structure. So the order does not depend on how the graph was built.
  Edges OrderedOperands(const Node& node) const {
    Edges operands = node.inputs;
    if (operands.size() < 2 || !Has(node.op, kCommutative)) return operands;
    const auto is_before = [&](Edge a, Edge b) {
      return std::pair(graph_.is_constant(a.node), HashOfEdge(a)) <
             std::pair(graph_.is_constant(b.node), HashOfEdge(b));
    };
    if (operands.size() > 2) {
      std::stable_sort(operands.begin(), operands.end(), is_before);
    } else if (is_before(operands[1], operands[0])) {
      std::swap(operands[0], operands[1]);
    }
    return operands;
  }

  Status Visit(NodeId id) {
    const Node& node = graph_.node(id);
    Edges operands = OrderedOperands(node);
    const bool is_ordered = operands == node.inputs;
    uint64_t hash = node.order_hash;
    uint64_t key = hash;
    for (Edge& e : operands) {
      hash = MixIn(hash, HashOfEdge(e));
      e = New(e);
      key = MixIn(key, static_cast<uint64_t>(e.node) << 32 | static_cast<uint64_t>(e.output));
    }
    hashes_[id] = hash;
    if (!Has(node.op, kBarrier)) {  // It may have effects, or be random.
      keys_[id] = key;
      size_t slot = key & (made_.size() - 1);
      for (; made_[slot] >= 0; slot = (slot + 1) & (made_.size() - 1)) {
        const NodeId twin = made_[slot];
        if (keys_[twin] == key && Same(node, operands, graph_.node(twin))) {
          return ReplaceOutputs(id, twin);
        }
      }
      made_[slot] = id;
    }
    if (is_ordered) return OkStatus();
    AG_LET(const NodeId made, Builder().AddCopy(node, operands));
    return ReplaceOutputs(id, made);
  }

  GraphBuilder& Builder() {
    if (!builder_) builder_.emplace(graph_);
    return *builder_;
  }

  bool Same(const Node& node, const Edges& operands, const Node& twin) const {
    if (node.op != twin.op || !(*node.attributes == *twin.attributes) ||
        node.outputs != twin.outputs) {
      return false;
    }
    if (node.op == OpKind::kConstant) return node.constant->digest == twin.constant->digest;
    Edges twins = OrderedOperands(twin);
    for (Edge& e : twins) e = New(e);
    return operands == twins;
  }

  // Replaces the outputs of `id` by those of `made`, which is an old node or a new one of the
  // builder.
  Status ReplaceOutputs(NodeId id, NodeId made) {
    for (int32_t i = 0; i < static_cast<int32_t>(graph_.node(id).outputs.size()); ++i) {
      const Edge to = New({made, i});
      AG_TRY(Builder().Replace({id, i}, to));
      replaced_[{id, i}] = to;
    }
    return OkStatus();
  }

  // Returns the edge that replaces an old edge.
  Edge New(Edge old) const {
    if (replaced_.empty()) return old;
    const auto found = replaced_.find(old);
    return found == replaced_.end() ? old : found->second;
  }

  const Graph& graph_;
  std::optional<GraphBuilder> builder_;  // Nothing: nothing has changed.
  std::vector<uint64_t> hashes_;         // The hash of the structure below each old node.
  std::vector<uint64_t> keys_;           // By old node.
  // The old nodes that stay: a table by key, where equal ones lie behind each other; -1: free.
  std::vector<NodeId> made_;
  absl::flat_hash_map<Edge, Edge> replaced_;
};

bool IsIdentityPerm(const Ints& perm) {
  for (size_t i = 0; i < perm.size(); ++i) {
    if (perm[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

bool AllPositive(const Ints& values) {
  return std::all_of(values.begin(), values.end(), [](int64_t v) { return v > 0; });
}

bool AllZero(const Ints& values) {
  return std::all_of(values.begin(), values.end(), [](int64_t v) { return v == 0; });
}

// Returns true when output 0 always equals operand 0. The node is one of `graph`, a Graph or a
// GraphPatch.
template <class AnyGraph>
bool IsNoOp(const AnyGraph& graph, const Node& node) {
  const auto is = [&](OpKind op) { return node.op == op; };
  const auto is_same = [&] { return graph.type(node.inputs[0]) == node.outputs[0]; };
  if (is(OpKind::kCast) || is(OpKind::kReshape) || is(OpKind::kExpand)) return is_same();
  if (is(OpKind::kTranspose)) return IsIdentityPerm(node.IntList("perm"));
  if (is(OpKind::kPad)) return AllZero(node.IntList("pads"));
  // A forward slice of full size keeps every element.
  if (is(OpKind::kSlice)) return is_same() && AllPositive(node.IntList("steps"));
  if (is(OpKind::kConcat)) return node.inputs.size() == 1;
  if (is(OpKind::kSplit)) return node.outputs.size() == 1;
  return Has(node.op, kReduction) && is_same() && node.IntList("axes").empty();
}

// Whether the node merges with an operand of the same kind.
bool MayMerge(const Node& node) {
  return node.op == OpKind::kReshape || node.op == OpKind::kTranspose;
}

// Replaces what no-ops and merging nodes give. A Target holds the nodes; all others stay in it, so
// that they are not inferred again.
template <class Target>
class NoOpRemover {
 public:
  explicit NoOpRemover(Target* target) : target_(*target) {}

  Status Visit(NodeId id) {
    const Node& node = target_.node(id);
    if (node.op == OpKind::kInput) return OkStatus();
    if (IsNoOp(target_, node)) return target_.Replace({id, 0}, target_.New(node.inputs[0]));
    return MayMerge(node) ? Merge(id, node) : OkStatus();
  }

 private:
  // Makes the readers of `id`, a reshape or transpose, read the operand of its operand.
  Status Merge(NodeId id, const Node& node) {
    const Node& below = target_.node(target_.New(node.inputs[0]).node);
    if (below.op != node.op) return OkStatus();
    const Edge source = target_.New(below.inputs[0]);
    Attributes attributes = *node.attributes;
    if (node.op == OpKind::kTranspose) {
      Ints perm = node.IntList("perm");
      for (int64_t& axis : perm) axis = below.IntList("perm")[static_cast<size_t>(axis)];
      if (IsIdentityPerm(perm)) return target_.Replace({id, 0}, source);
      attributes.Set("perm", std::move(perm));
    } else if (target_.type(source) == node.outputs[0]) {
      return target_.Replace({id, 0}, source);
    }
    AG_LET(const NodeId made, target_.Add(node.op, source, std::move(attributes)));
    return target_.Replace({id, 0}, {made, 0});
  }

  Target& target_;
};

// The Target for all nodes of a graph, visited in order.
class WholeTarget {
 public:
  explicit WholeTarget(const Graph& graph) : builder_(graph) {}

  const Node& node(NodeId id) const { return builder_.node(id); }
  const TensorType& type(Edge e) const { return builder_.type(e); }
  StatusOr<NodeId> Add(OpKind op, Edge operand, Attributes attributes) {
    return builder_.Add(op, {&operand, 1}, std::move(attributes));
  }
  Status Replace(Edge from, Edge to) {
    AG_TRY(builder_.Replace(from, to));
    replaced_[from] = to;
    return OkStatus();
  }
  // Returns the edge that replaces an edge of a node before the present one, or the edge itself.
  Edge New(Edge e) const {
    const auto found = replaced_.find(e);
    return found == replaced_.end() ? e : found->second;
  }
  const GraphBuilder& builder() const { return builder_; }

 private:
  GraphBuilder builder_;
  absl::flat_hash_map<Edge, Edge> replaced_;  // To edges that are not replaced themselves.
};

// The Target for what a patch changes: it lists the nodes that are to be visited.
class PatchTarget {
 public:
  explicit PatchTarget(GraphPatch* patch) : patch_(*patch) {
    for (NodeId id = patch_.base().size(); id < patch_.size(); ++id) changed_.push_back(id);
    for (const NodeId id : patch_.replaced_nodes()) AddReaders(id);
  }

  const Node& node(NodeId id) const { return patch_.node(id); }
  const TensorType& type(Edge e) const { return patch_.type(e); }
  StatusOr<NodeId> Add(OpKind op, Edge operand, Attributes attributes) {
    AG_LET(const NodeId made, patch_.Add(op, {&operand, 1}, std::move(attributes)));
    changed_.push_back(made);
    return made;
  }
  Status Replace(Edge from, Edge to) {
    AG_TRY(patch_.Replace(from, to));
    AddReaders(from.node);
    return OkStatus();
  }
  Edge New(Edge e) const { return patch_.Resolve(e); }
  // Added nodes and readers of replaced edges, also those that visits change.
  const std::vector<NodeId>& changed() const { return changed_; }

 private:
  void AddReaders(NodeId id) {
    const Graph& base = patch_.base();
    if (id < base.size()) {
      for (int32_t i = 0; i < base.output_count(id); ++i) {
        for (const Use& use : base.uses({id, i})) changed_.push_back(use.node);
      }
    }
    for (NodeId added = base.size(); added < patch_.size(); ++added) {
      const auto reads = [&](const Edge& e) { return e.node == id; };
      if (std::ranges::any_of(patch_.node(added).inputs, reads)) changed_.push_back(added);
    }
  }

  GraphPatch& patch_;
  std::vector<NodeId> changed_;
};

}  // namespace

StatusOr<Graph> Dedupe(const Graph& graph, std::vector<NodeId>* place) {
  return Deduper(graph).Run(place);
}

bool IsRemovable(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  return IsNoOp(graph, node) || (MayMerge(node) && graph.node(node.inputs[0].node).op == node.op);
}

bool HasRemovable(const Graph& graph) {
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (IsRemovable(graph, id)) return true;
  }
  return false;
}

StatusOr<Graph> RemoveNoOps(const Graph& graph, std::vector<NodeId>* place) {
  if (!HasRemovable(graph)) return graph;
  WholeTarget whole(graph);
  NoOpRemover remover(&whole);
  for (NodeId id = 0; id < graph.size(); ++id) AG_TRY(remover.Visit(id));
  return whole.builder().Build(place);
}

// Ends although the patch may have a cycle, whose nodes would merge without end.
Status RemoveNoOps(GraphPatch* patch) {
  PatchTarget target(patch);
  NoOpRemover remover(&target);
  const size_t visits_max = target.changed().size() + static_cast<size_t>(patch->size());
  for (size_t i = 0; i < std::min(target.changed().size(), visits_max); ++i) {
    const NodeId id = target.changed()[i];
    if (target.New({id, 0}) != Edge{id, 0}) continue;
    AG_TRY(remover.Visit(id));
  }
  return OkStatus();
}

}  // namespace ag
