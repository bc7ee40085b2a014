// All rewrites of one graph, in a form from which the rewrites of a child graph are found by a
// search around the change only. Copies share their data. Immutable; safe to share between threads.
//
// Invariants. A rule's matches are stored by the first root. A match at a root depends only on
// nodes at most IndexedRule::reach operands below one of its roots. So a child keeps the matches
// whose roots are further above every change, and matches again at the other roots. Nodes have
// *names* that stay the same from parent to child, while ids change with the graph's order; a match
// is translated to ids when it is requested.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "rules/language/bindings.h"
#include "rules/match/rewrite.h"
#include "rules/match/rule_index.h"

namespace ag {

// One rewrite without its bindings: cheap to list by the hundred.
struct Site {
  const Rule* rule = nullptr;
  absl::InlinedVector<Edge, 2> roots;  // As Rewrite::roots.
  int variant = 0;
  // Identifies the match. A child's site keeps the parent's number when its match was kept, unless
  // all count as new; a new match gets a number above all numbers in the parent. Unique in the
  // process.
  int64_t serial = 0;
  const Bindings* named = nullptr;  // Owned by the MatchSet.
};

// Whether matches that were kept keep their numbers (Site::serial), or all count as new.
enum class Serials : uint8_t { kKept, kNew };

class MatchSet {
 public:
  static constexpr int kSubsetsMax = 8;

  // Matches everywhere. `rules` must outlive this and its children.
  MatchSet(const RuleIndex& rules, const Graph& graph, int subsets_max = kSubsetsMax);

  // Returns MatchSet(rules, child), found by a search around the change. `place`: as in FindChange.
  MatchSet Next(const Graph& child, std::span<const NodeId> place,
                Serials serials = Serials::kKept) const;

  // In the order of FindRewrites. The sites are valid as long as this set.
  const std::vector<Site>& sites() const { return sites_; }
  // Returns the rewrite of a site.
  Rewrite At(const Site& site) const;

  const Graph& graph() const { return graph_; }

 private:
  friend class MatchUpdate;

  // One match at one first root, with names in place of ids.
  struct Match {
    Bindings bindings;
    int position = -1;  // Element::position, for "each i: t".
    std::string key;    // FamilyKey and its hash, for "each i: t".
    size_t key_hash = 0;
  };
  struct Spot {
    NodeId root = -1;                                   // A name.
    std::shared_ptr<const std::vector<Match>> matches;  // Never empty.
  };
  // Matches that several roots with one key make together.
  struct Family {
    std::vector<std::pair<Spot, int>> elements;  // In the order of their roots and matches.
    std::shared_ptr<const std::vector<Bindings>> matches;
  };
  struct RuleMatches {
    std::vector<Spot> spots;  // Ascending by name.
    // For "each i: t" only: families of two elements or more, or with positions.
    std::vector<Family> families;
  };

  explicit MatchSet(const Graph& graph) : graph_(graph) {}

  Graph graph_;
  const RuleIndex* rules_ = nullptr;
  int subsets_max_ = 0;
  std::vector<NodeId> name_of_;  // By node.
  std::vector<NodeId> node_of_;  // By name; -1: not in this graph.
  std::vector<std::shared_ptr<const RuleMatches>> by_rule_;
  std::vector<Site> sites_;
};

}  // namespace ag
