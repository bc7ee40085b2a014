#include "lab/generate/terms.h"

#include <algorithm>
#include <map>
#include <set>

#include "graph/hash.h"
#include "graph/tensor.h"

namespace ag::generate {
namespace {

class Renaming {
 public:
  explicit Renaming(const TermTable& table) : table_(table) {}

  uint64_t HashOf(TermId id) {
    const Term& term = table_.term(id);
    if (term.call < 0) {
      const auto [found, fresh] = names_.emplace(term.leaf, names_.size());
      return MixIn(5, MixIn(static_cast<uint64_t>(term.type), found->second));
    }
    const auto seen = hashes_.find(id);
    if (seen != hashes_.end()) return seen->second;
    uint64_t hash = MixIn(static_cast<uint64_t>(term.call), static_cast<uint64_t>(term.output));
    for (const TermId operand : term.operands) hash = MixIn(hash, HashOf(operand));
    return hashes_[id] = hash;
  }

 private:
  const TermTable& table_;
  std::map<int, uint64_t> names_;
  std::map<TermId, uint64_t> hashes_;
};

class GraphMaker {
 public:
  GraphMaker(const TermTable& table, size_t assignment) : table_(table), assignment_(assignment) {
    for (const Leaf& leaf : table.universe.leaves) {
      const TensorType type{DType::kFloat64, leaf.shapes[assignment]};
      leaves_.push_back(builder_.Input(leaf.name, type));
    }
  }

  StatusOr<Graph> Make(const std::vector<TermId>& roots) {
    for (size_t i = 0; i < roots.size(); ++i) {
      AG_LET(const Edge edge, Add(roots[i]));
      builder_.Output(edge, fmt::format("o{}", i));
    }
    return builder_.Build();
  }

 private:
  StatusOr<Edge> Add(TermId id) {
    const Term& term = table_.term(id);
    if (term.call < 0) return leaves_[static_cast<size_t>(term.leaf)];
    const int32_t node = term.nodes.back();
    if (const auto made = nodes_.find(node); made != nodes_.end()) {
      return Edge{made->second, term.output};
    }
    const Call& call = table_.call(term);
    if (call.extra != nullptr) {
      return Err(StatusCode::kInvalidArgument, "{} is not in the operator table", call.extra->name);
    }
    std::vector<Edge> operands;
    for (const TermId operand : term.operands) {
      AG_LET(const Edge edge, Add(operand));
      operands.push_back(edge);
    }
    if (operands.size() < call.operands[assignment_].size()) {
      operands.push_back(Zeros(call.operands[assignment_].back()));
    }
    AG_LET(const NodeId made, builder_.Add(call.op, operands, *call.nodes[assignment_].attributes));
    nodes_[node] = made;
    return Edge{made, term.output};
  }

  // Returns one constant per type: a rule that names a bias twice then finds the same one.
  Edge Zeros(const TensorType& type) {
    const auto [found, fresh] = zeros_.try_emplace(type.shape);
    if (fresh) {
      const Tensor zeros = Tensor::Zeros(type);
      found->second = builder_.Constant(type, zeros.Name(), zeros.bytes());
    }
    return found->second;
  }

  const TermTable& table_;
  const size_t assignment_;
  GraphBuilder builder_;
  std::vector<Edge> leaves_;
  std::map<Shape, Edge> zeros_;
  std::map<int32_t, NodeId> nodes_;
};

bool SameAttributes(const Call& x, const Call& y) {
  if (x.op != y.op || x.extra != y.extra || x.nodes.size() != y.nodes.size()) return false;
  for (size_t s = 0; s < x.nodes.size(); ++s) {
    if (!(*x.nodes[s].attributes == *y.nodes[s].attributes)) return false;
  }
  return true;
}

}  // namespace

int OpsOf(const TermTable& table, const std::vector<TermId>& roots) {
  std::set<int32_t> nodes;
  for (const TermId root : roots) {
    nodes.insert(table.term(root).nodes.begin(), table.term(root).nodes.end());
  }
  return static_cast<int>(nodes.size());
}

uint32_t VariablesOf(const TermTable& table, const std::vector<TermId>& roots) {
  uint32_t variables = 0;
  for (const TermId root : roots) variables |= table.term(root).variables;
  return variables;
}

bool IsLinear(const TermTable& table, const std::vector<TermId>& roots) {
  std::vector<TermId> open = roots;
  uint32_t seen = 0;
  while (!open.empty()) {
    const Term& term = table.term(open.back());
    open.pop_back();
    if (term.call < 0 && (seen & term.variables) != 0) return false;
    if (term.call < 0) seen |= term.variables;
    open.insert(open.end(), term.operands.begin(), term.operands.end());
  }
  return true;
}

bool IsEmbedded(const TermTable& table, TermId small, TermId large) {
  if (small == large) return true;
  const Term& a = table.term(small);
  const Term& b = table.term(large);
  if (b.call < 0) return false;
  const auto below = [&](TermId operand) { return IsEmbedded(table, small, operand); };
  if (std::any_of(b.operands.begin(), b.operands.end(), below)) return true;
  if (a.call < 0 || a.output != b.output || a.operands.size() != b.operands.size()) return false;
  if (!SameAttributes(table.call(a), table.call(b))) return false;
  for (size_t i = 0; i < a.operands.size(); ++i) {
    if (!IsEmbedded(table, a.operands[i], b.operands[i])) return false;
  }
  return true;
}

namespace {

// Returns the operators with attributes below the roots.
std::vector<const Call*> AttributedCalls(const TermTable& table, std::vector<TermId> open) {
  std::vector<const Call*> calls;
  while (!open.empty()) {
    const Term& term = table.term(open.back());
    open.pop_back();
    open.insert(open.end(), term.operands.begin(), term.operands.end());
    if (term.call < 0) continue;
    const Call& call = table.call(term);
    if (call.extra == nullptr && !Info(call.op).attributes.empty()) calls.push_back(&call);
  }
  return calls;
}

}  // namespace

bool SaysAll(const TermTable& table, const std::vector<TermId>& source,
             const std::vector<TermId>& target) {
  if ((VariablesOf(table, target) & ~VariablesOf(table, source)) != 0) return false;
  const std::vector<const Call*> said = AttributedCalls(table, source);
  const std::vector<const Call*> read = AttributedCalls(table, target);
  return std::all_of(read.begin(), read.end(), [&](const Call* call) {
    return std::any_of(said.begin(), said.end(),
                       [&](const Call* other) { return SameAttributes(*call, *other); });
  });
}

uint64_t RenamedHash(const TermTable& table, const std::vector<TermId>& left,
                     const std::vector<TermId>& right) {
  Renaming renaming(table);
  uint64_t hash = left.size();
  for (const TermId root : left) hash = MixIn(hash, renaming.HashOf(root));
  for (const TermId root : right) hash = MixIn(hash, renaming.HashOf(root));
  return hash;
}

StatusOr<Graph> GraphOf(const TermTable& table, const std::vector<TermId>& roots,
                        size_t assignment) {
  return GraphMaker(table, assignment).Make(roots);
}

}  // namespace ag::generate
