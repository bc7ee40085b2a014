// All rewrites of one graph, kept in a form from which those of its child are found by looking only
// around the change. Copies share; thread-safe to read.
//
// A rule's matches are kept by the first root. What a match at a root depends on stands at most
// IndexedRule::reach operands below one of its roots, so a child keeps all whose roots are further
// than that above everything changed, and matches again at the others. Nodes go by names that hold
// from parent to child, while their ids move with the graph's order; a match is translated to ids
// when it is asked for.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "rules/bindings.h"
#include "rules/rewrite.h"
#include "rules/rule_index.h"

namespace ag {

// One rewrite, not yet bound: cheap to list by the hundred.
struct Site {
  const Rule* rule = nullptr;
  absl::InlinedVector<Edge, 2> roots;  // As Rewrite::roots.
  int variant = 0;
  // Which match this is: a child's site has its parent's number when the match was kept, and one
  // greater than all in the parent when it was found anew. Never twice in a process.
  int64_t serial = 0;
  const Rewrite::Bindings* named = nullptr;  // Held by the MatchSet.
};

class MatchSet {
 public:
  static constexpr int kSubsetsMax = 8;

  // Matches everywhere. Borrows `rules` for its whole life and its children's.
  MatchSet(const RuleIndex& rules, const Graph& graph, int subsets_max = kSubsetsMax);

  // Those of `child`: as MatchSet(rules, child), found around the change. `place` as FindChange's.
  MatchSet Next(const Graph& child, std::span<const NodeId> place) const;

  // In the order of FindRewrites. The sites are valid while this is.
  const std::vector<Site>& sites() const { return sites_; }
  Rewrite At(const Site& site) const;

  const Graph& graph() const { return graph_; }

 private:
  friend class MatchUpdate;

  // One match at one first root, in names.
  struct Match {
    Rewrite::Bindings bindings;
    int position = -1;  // Element::position, for "each i: t".
    std::string key;    // FamilyKey, for "each i: t", and its hash.
    size_t key_hash = 0;
  };
  struct Spot {
    NodeId root = -1;                                   // A name.
    std::shared_ptr<const std::vector<Match>> matches;  // Never empty.
  };
  // What several roots that agree make together.
  struct Family {
    std::vector<std::pair<Spot, int>> elements;  // In the order of their roots and matches.
    std::shared_ptr<const std::vector<Rewrite::Bindings>> matches;
  };
  struct RuleMatches {
    std::vector<Spot> spots;       // Ascending by name.
    std::vector<Family> families;  // "each i: t" only: of two elements or more, or with positions.
  };

  explicit MatchSet(const Graph& graph) : graph_(graph) {}

  Graph graph_;
  const RuleIndex* rules_ = nullptr;
  int subsets_max_ = 0;
  std::vector<NodeId> name_of_;  // By node.
  std::vector<NodeId> node_of_;  // By name; -1 when it is gone.
  std::vector<std::shared_ptr<const RuleMatches>> by_rule_;
  std::vector<Site> sites_;
};

}  // namespace ag
