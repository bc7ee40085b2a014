#include "graph/onnx/export/correspondence.h"

#include <algorithm>
#include <map>

#include "graph/structure_hash.h"

namespace ag {
namespace {

// The readers of a value with more of them are not compared with each other.
constexpr size_t kReadersMax = 64;

// What is known of the nodes of one graph.
struct Side {
  explicit Side(const Graph& of) : graph(of), partner(static_cast<size_t>(of.size()), -1) {
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      place.emplace(graph.inputs()[i], i + 1);
    }
    for (NodeId id = 0; id < graph.size(); ++id) AddHashes(id);
  }

  // Constant operands count for what a node is like, others only for what is below it.
  void AddHashes(NodeId id) {
    const Node& node = graph.node(id);
    StructureHash own = node.hash;
    for (const TensorType& type : node.outputs) {
      own.a = MixIn(own.a, static_cast<uint64_t>(type.dtype));
      for (const int64_t size : type.shape) own.b = MixIn(own.b, static_cast<uint64_t>(size));
    }
    if (node.op == OpKind::kInput) own.a = MixIn(own.a, place[id]);
    StructureHash whole = own;
    std::vector<StructureHash> operands;
    for (const Edge& e : node.inputs) {
      const StructureHash operand =
          MixIn(below[static_cast<size_t>(e.node)], {static_cast<uint64_t>(e.output), 1});
      operands.push_back(operand);
      if (graph.is_constant(e.node)) own = MixIn(own, operand);
    }
    has_weights.push_back(
        std::ranges::any_of(node.inputs, [&](const Edge& e) { return graph.is_constant(e.node); }));
    if (Has(node.op, kCommutative)) std::ranges::sort(operands);
    for (const StructureHash& operand : operands) whole = MixIn(whole, operand);
    like.push_back(own);
    below.push_back(whole);
  }

  bool IsFree(NodeId id) const { return partner[static_cast<size_t>(id)] < 0; }
  const StructureHash& Like(NodeId id) const { return like[static_cast<size_t>(id)]; }

  const Graph& graph;
  std::vector<NodeId> partner;       // In the other graph; -1: none yet.
  std::vector<StructureHash> like;   // Of the node with its constant operands.
  std::vector<StructureHash> below;  // Of the node and all that it depends on.
  std::vector<bool> has_weights;     // Whether a node reads constants.
  std::map<NodeId, uint64_t> place;  // Of an input.
};

class Matcher {
 public:
  Matcher(const Graph& before, const Graph& after) : before_(before), after_(after) {}

  std::vector<NodeId> Run() {
    Pair(before_.below, after_.below, /*only_single=*/false);
    const size_t outputs = std::min(before_.graph.outputs().size(), after_.graph.outputs().size());
    for (size_t i = 0; i < outputs; ++i) {
      Try(before_.graph.outputs()[i].edge.node, after_.graph.outputs()[i].edge.node);
    }
    Spread();
    Pair(before_.like, after_.like, /*only_single=*/true);
    Spread();
    return std::move(after_.partner);
  }

 private:
  void Try(NodeId old, NodeId now) {
    if (!before_.IsFree(old) || !after_.IsFree(now)) return;
    if (before_.Like(old) != after_.Like(now)) return;
    before_.partner[static_cast<size_t>(old)] = now;
    after_.partner[static_cast<size_t>(now)] = old;
    todo_.push_back(now);
  }

  // Pairs free nodes with equal hashes, in order; or only where there is one on either side
  // and it has weights: an exp that is the only one may be another one than before.
  void Pair(const std::vector<StructureHash>& old, const std::vector<StructureHash>& now,
            bool only_single) {
    std::map<StructureHash, std::vector<NodeId>> by_hash;
    for (NodeId id = before_.graph.size(); id-- > 0;) {
      if (before_.IsFree(id)) by_hash[old[static_cast<size_t>(id)]].push_back(id);
    }
    std::map<StructureHash, int> count;
    for (NodeId id = 0; id < after_.graph.size(); ++id) {
      if (after_.IsFree(id)) ++count[now[static_cast<size_t>(id)]];
    }
    for (NodeId id = 0; id < after_.graph.size(); ++id) {
      const StructureHash& hash = now[static_cast<size_t>(id)];
      const auto found = by_hash.find(hash);
      if (!after_.IsFree(id) || found == by_hash.end() || found->second.empty()) continue;
      if (only_single && !after_.has_weights[static_cast<size_t>(id)]) continue;
      if (only_single && (found->second.size() != 1 || count[hash] != 1)) continue;
      Try(found->second.back(), id);
      found->second.pop_back();
    }
  }

  // Pairs what stands beside pairs: operands in the same place, and single readers of one kind.
  void Spread() {
    while (!todo_.empty()) {
      const NodeId now = todo_.back();
      todo_.pop_back();
      const NodeId old = after_.partner[static_cast<size_t>(now)];
      const auto& reads = after_.graph.node(now).inputs;
      const auto& read = before_.graph.node(old).inputs;
      for (size_t i = 0; i < std::min(reads.size(), read.size()); ++i) {
        Try(read[i].node, reads[i].node);
        if (Has(after_.graph.node(now).op, kCommutative)) {
          Try(read[read.size() - 1 - i].node, reads[i].node);
        }
      }
      const auto results = static_cast<int32_t>(after_.graph.node(now).outputs.size());
      for (int32_t i = 0; i < results; ++i) SpreadToReaders({old, i}, {now, i});
    }
  }

  void SpreadToReaders(Edge old, Edge now) {
    const auto uses = after_.graph.uses(now);
    const auto others = before_.graph.uses(old);
    if (uses.size() > kReadersMax || others.size() > kReadersMax) return;
    for (const Use& use : uses) {
      if (!after_.IsFree(use.node)) continue;
      NodeId only = -1;
      int alike = 0;
      for (const Use& other : others) {
        if (!before_.IsFree(other.node) || before_.Like(other.node) != after_.Like(use.node)) {
          continue;
        }
        alike += other.node != only ? 1 : 0;
        only = other.node;
      }
      if (alike == 1) Try(only, use.node);
    }
  }

  Side before_, after_;
  std::vector<NodeId> todo_;  // Nodes of `after` whose neighbours were not looked at.
};

}  // namespace

std::vector<NodeId> Correspondence(const Graph& before, const Graph& after) {
  return Matcher(before, after).Run();
}

}  // namespace ag
