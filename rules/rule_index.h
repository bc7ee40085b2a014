// Rules by the operator that their first root may be, with what can be told of a place before the
// matcher is asked. Immutable and thread-safe to read.
#pragma once

#include <bitset>
#include <span>
#include <vector>

#include "rules/pattern.h"
#include "rules/rule_set.h"

namespace ag {

using OpKinds = std::bitset<kOpKindCount>;

// How a rule with several roots ("s, t => u, v") finds the other roots of a changed place.
enum class Partners : uint8_t {
  kNone,    // One root.
  kBelow,   // Two roots; the second reads a variable that stands `partner_climb` below the first.
  kAnyone,  // No such variable: a change anywhere may matter to any first root.
};

struct IndexedRule {
  const Rule* rule = nullptr;
  const RulePattern* pattern = nullptr;
  // A match depends on nothing that is further than this many operands below one of its roots.
  int reach = 0;
  Partners partners = Partners::kNone;
  int partner_climb = 0;
  OpKinds partner_ops;  // What the second root may be.

  // What operand i of the first root must be, when its pattern says so; all for a variable.
  std::vector<OpKinds> operands;
  bool swaps = false;    // Commutative: or the other way round.
  bool spreads = false;  // "t...": all operands must be operands[0].

  // False when no match has `id` for its first root. REQUIRES: the node's operator is right.
  bool MayMatch(const Graph& graph, NodeId id) const;
};

class RuleIndex {
 public:
  enum class Kind : uint8_t { kSearch, kCleanUp };
  // The rules of one kind, numbered in their order. `rules` outlives this.
  RuleIndex(const RuleSet& rules, Kind kind);

  std::span<const IndexedRule> rules() const { return rules_; }
  // Numbers of the rules whose first root may be `op`, ascending.
  std::span<const int> ByRoot(OpKind op) const { return by_root_[static_cast<size_t>(op)]; }
  int reach_max() const { return reach_max_; }

 private:
  std::vector<IndexedRule> rules_;
  std::vector<std::vector<int>> by_root_;
  int reach_max_ = 0;
};

}  // namespace ag
