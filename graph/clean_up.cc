#include "graph/clean_up.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/container/flat_hash_map.h"
#include "graph/hash.h"
#include "graph/rebuild.h"

namespace ag {
namespace {

uint64_t HashOf(const AttributeValue& value) {
  if (const auto* i = std::get_if<int64_t>(&value)) return Mix(static_cast<uint64_t>(*i));
  if (const auto* f = std::get_if<double>(&value)) return Mix(std::bit_cast<uint64_t>(*f));
  if (const auto* list = std::get_if<Ints>(&value)) {
    uint64_t hash = list->size();
    for (const int64_t i : *list) hash = MixIn(hash, static_cast<uint64_t>(i));
    return hash;
  }
  return MixBytes(0, std::get<std::string>(value));
}

uint64_t HashOf(const TensorType& type) {
  uint64_t hash = static_cast<uint64_t>(type.dtype);
  for (const int64_t size : type.shape) hash = MixIn(hash, static_cast<uint64_t>(size));
  return hash;
}

// The node without its operands.
uint64_t HashOfItself(const Node& node) {
  uint64_t hash = MixBytes(0, Info(node.op).text_name);
  for (const auto& [name, value] : node.attributes->items()) {
    hash = MixIn(MixBytes(hash, name), HashOf(value));
  }
  if (node.op == OpKind::kConstant) {
    uint64_t head = 0;
    std::memcpy(&head, node.constant->digest.bytes.data(), sizeof(head));
    hash = MixIn(MixIn(hash, head), HashOf(node.outputs[0]));
  }
  return hash;
}

class Deduper {
 public:
  explicit Deduper(const Graph& graph)
      : graph_(graph), rebuild_(graph), hashes_(static_cast<size_t>(graph.size())) {}

  StatusOr<Graph> Run() {
    for (size_t i = 0; i < graph_.inputs().size(); ++i) hashes_[graph_.inputs()[i]] = Mix(i + 1);
    if (!HasWork()) return graph_;
    made_.clear();
    opaque_count_ = 0;
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (graph_.node(id).op != OpKind::kInput) AG_TRY(Visit(id));
    }
    return rebuild_.Finish();
  }

 private:
  uint64_t HashOfEdge(Edge e) const {
    return MixIn(hashes_[e.node], static_cast<uint64_t>(e.output));
  }

  // Constants last, then by structure, so that the order does not depend on how the graph was
  // built.
  std::vector<Edge> OrderedOperands(NodeId id) const {
    const Node& node = graph_.node(id);
    std::vector<Edge> operands(node.inputs.begin(), node.inputs.end());
    if (Has(node.op, kCommutative)) {
      std::stable_sort(operands.begin(), operands.end(), [&](Edge a, Edge b) {
        return std::pair(graph_.is_constant(a.node), HashOfEdge(a)) <
               std::pair(graph_.is_constant(b.node), HashOfEdge(b));
      });
    }
    return operands;
  }

  // Whether Visit would do anything but copy: most graphs that a search makes have nothing to
  // merge, and looking is far cheaper than building them anew.
  bool HasWork() {
    made_.reserve(static_cast<size_t>(graph_.size()));
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.node(id);
      if (node.op == OpKind::kInput) continue;
      const std::vector<Edge> operands = OrderedOperands(id);
      if (!std::equal(operands.begin(), operands.end(), node.inputs.begin())) return true;
      auto& twins = made_[HashNode(id, operands)];
      for (const NodeId twin : twins) {
        if (Same(node, operands, graph_.node(twin))) return true;
      }
      twins.push_back(id);
    }
    return false;
  }

  // The structure below `id`, its operands in the given order.
  uint64_t HashNode(NodeId id, const std::vector<Edge>& operands) {
    const Node& node = graph_.node(id);
    uint64_t hash = HashOfItself(node);
    for (const Edge e : operands) hash = MixIn(hash, HashOfEdge(e));
    if (Has(node.op, kBarrier)) hash = MixIn(hash, static_cast<uint64_t>(++opaque_count_));
    return hashes_[id] = hash;
  }

  Status Visit(NodeId id) {
    const Node& node = graph_.node(id);
    std::vector<Edge> operands = OrderedOperands(id);
    const uint64_t hash = HashNode(id, operands);
    for (Edge& e : operands) e = rebuild_.New(e);
    for (const NodeId twin : made_[hash]) {
      if (!Same(node, operands, rebuild_.builder().node(twin))) continue;
      const auto outputs = static_cast<int32_t>(node.outputs.size());
      for (int32_t i = 0; i < outputs; ++i) rebuild_.Map({id, i}, {twin, i});
      return OkStatus();
    }
    AG_LET(const NodeId made, rebuild_.Copy(id, operands));
    made_[hash].push_back(made);
    return OkStatus();
  }

  static bool Same(const Node& node, const std::vector<Edge>& operands, const Node& made) {
    if (Has(node.op, kBarrier)) return false;  // It may have effects, or be random.
    if (node.op != made.op || !(*node.attributes == *made.attributes) ||
        node.outputs != made.outputs) {
      return false;
    }
    if (node.op == OpKind::kConstant) return node.constant->digest == made.constant->digest;
    return std::equal(operands.begin(), operands.end(), made.inputs.begin(), made.inputs.end());
  }

  const Graph& graph_;
  Rebuild rebuild_;
  std::vector<uint64_t> hashes_;  // Of the structure below each old node.
  absl::flat_hash_map<uint64_t, absl::InlinedVector<NodeId, 1>> made_;
  int opaque_count_ = 0;
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

// Does output 0 always equal operand 0? `same` says that their types are equal.
bool IsNoOp(const Node& node, bool same) {
  const auto is = [&](OpKind op) { return node.op == op; };
  if (is(OpKind::kCast) || is(OpKind::kReshape) || is(OpKind::kExpand)) return same;
  if (is(OpKind::kTranspose)) return IsIdentityPerm(node.IntList("perm"));
  if (is(OpKind::kPad)) return AllZero(node.IntList("pads"));
  // Forward and of full size: every element stays.
  if (is(OpKind::kSlice)) return same && AllPositive(node.IntList("steps"));
  if (is(OpKind::kConcat)) return node.inputs.size() == 1;
  if (is(OpKind::kSplit)) return node.outputs.size() == 1;
  return Has(node.op, kReduction) && same && node.IntList("axes").empty();
}

// Copies `id`, a reshape or transpose, on top of what its operand of the same kind reads.
StatusOr<Edge> CopyMerged(NodeId id, const Node& node, Rebuild* rebuild) {
  const Edge operand = rebuild->New(node.inputs[0]);
  const Node& below = rebuild->builder().node(operand.node);
  if (below.op != node.op) {
    AG_LET(const NodeId made, rebuild->Copy(id));
    return Edge{made, 0};
  }
  const Edge source = below.inputs[0];
  Attributes attributes = *node.attributes;
  if (node.op == OpKind::kTranspose) {
    Ints perm = node.IntList("perm");
    for (int64_t& axis : perm) axis = below.IntList("perm")[static_cast<size_t>(axis)];
    if (IsIdentityPerm(perm)) return source;
    attributes.Set("perm", std::move(perm));
  } else if (rebuild->builder().type(source) == node.outputs[0]) {
    return source;
  }
  return rebuild->builder().Add1(node.op, {source}, std::move(attributes));
}

}  // namespace

StatusOr<Graph> Dedupe(const Graph& graph) { return Deduper(graph).Run(); }

StatusOr<Graph> RemoveNoOps(const Graph& graph) {
  const auto is_no_op = [&](const Node& node) {
    return IsNoOp(node, !node.inputs.empty() && graph.type(node.inputs[0]) == node.outputs[0]);
  };
  const auto may_merge = [](const Node& node) {
    return node.op == OpKind::kReshape || node.op == OpKind::kTranspose;
  };
  const auto has_work = [&](const Node& node) {
    return is_no_op(node) || (may_merge(node) && graph.node(node.inputs[0].node).op == node.op);
  };
  if (std::none_of(graph.nodes().begin(), graph.nodes().end(), has_work)) return graph;
  Rebuild rebuild(graph);
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (node.op == OpKind::kInput) continue;
    if (is_no_op(node)) {
      rebuild.Map({id, 0}, rebuild.New(node.inputs[0]));
    } else if (may_merge(node)) {
      AG_LET(const Edge made, CopyMerged(id, node, &rebuild));
      rebuild.Map({id, 0}, made);
    } else {
      AG_TRY(rebuild.Copy(id));
    }
  }
  return rebuild.Finish();
}

}  // namespace ag
