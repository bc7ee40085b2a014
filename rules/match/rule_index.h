// Rules by the operator of their first root, with quick checks of a place before the matcher runs.
// Immutable; safe to share between threads.
#pragma once

#include <bitset>
#include <span>
#include <vector>

#include "rules/language/pattern.h"
#include "rules/language/rule_set.h"

namespace ag {

using OpKinds = std::bitset<kOpKindCount>;

// How to find the other roots of a rule with several roots ("s, t => u, v") near a change.
enum class Partners : uint8_t {
  kNone,    // One root.
  kBelow,   // Two roots; the second reads a variable `partner_climb` operands below the first.
  kAnyone,  // No such variable: a change anywhere may affect any first root.
};

struct IndexedRule {
  const Rule* rule = nullptr;
  const RulePattern* pattern = nullptr;
  // A match depends on nothing further than this many operands below one of its roots.
  int reach = 0;
  Partners partners = Partners::kNone;
  int partner_climb = 0;
  OpKinds partner_ops;  // The operators that the second root may be.

  // The operators that operand i of the first root may be; all for a variable.
  std::vector<OpKinds> operands;
  bool swaps = false;    // Commutative: also in the other order.
  bool spreads = false;  // "t...": all operands are as operands[0].

  // Returns false when no match has `id` as its first root. REQUIRES: the node has the right
  // operator.
  bool MayMatch(const Graph& graph, NodeId id) const;
};

class RuleIndex {
 public:
  enum class Kind : uint8_t { kSearch, kCleanUp };
  // Indexes the rules of one kind, numbered in their order. `rules` must outlive this.
  RuleIndex(const RuleSet& rules, Kind kind);

  std::span<const IndexedRule> rules() const { return rules_; }
  // Returns the numbers of the rules whose first root may be `op`, ascending.
  std::span<const int> ByRoot(OpKind op) const { return by_root_[static_cast<size_t>(op)]; }
  int reach_max() const { return reach_max_; }

 private:
  std::vector<IndexedRule> rules_;
  std::vector<std::vector<int>> by_root_;
  int reach_max_ = 0;
};

}  // namespace ag
