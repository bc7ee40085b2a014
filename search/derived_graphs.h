// The graphs of one search, stored as recipes: a parent and a rewrite. A search makes thousands of
// graphs with thousands of nodes and uses few of them twice. So only roots and the last used graphs
// are held as a whole; another graph is made again along its path on demand. One thread at a time.
#pragma once

#include <list>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "rules/match/child_graphs.h"
#include "rules/match/match_set.h"

namespace ag {

class DerivedGraphs {
 public:
  using Id = int32_t;

  // The most nodes of all held graphs except roots; they take about 60 MB.
  static constexpr int64_t kNodesMax = 256 * 1024;

  // `rules` must outlive it.
  explicit DerivedGraphs(const RuleSet& rules, int64_t nodes_max = kNodesMax)
      : search_rules_(rules, RuleIndex::Kind::kSearch),
        clean_up_rules_(rules, RuleIndex::Kind::kCleanUp),
        nodes_max_(nodes_max) {}

  Id AddRoot(Graph graph);
  // Adds a graph and returns its id. REQUIRES: `child` is the result of Children(parent) for
  // `rewrite`.
  Id Add(Id parent, Rewrite rewrite, ChildGraph child);
  // Returns the graph with this id, with the same nodes in the same order.
  Graph Get(Id id);

  // Return the places of its parent's nodes in it, valid until the next call, and ChildGraph's
  // is_local. REQUIRES: not a root.
  const std::vector<NodeId>& Place(Id id) { return MustFind(id).place; }
  bool IsLocal(Id id) { return MustFind(id).is_local; }

  // Returns its rewrites: derived from its parent's when these are held, else matched everywhere.
  std::shared_ptr<const MatchSet> Matches(Id id);
  // Returns the maker of its children: cleaned up, and of at most `size_max` nodes before the
  // clean-up.
  ChildGraphs Children(Id id, int size_max = INT32_MAX);

  const RuleIndex& clean_up_rules() const { return clean_up_rules_; }
  int made_again() const { return made_again_; }      // Number of graphs that were made again.
  int64_t nodes_held() const { return nodes_held_; }  // Without roots.

 private:
  struct Recipe {
    Id parent = -1;  // -1: a root.
    Rewrite rewrite;
  };
  struct Held {
    Graph graph;
    std::vector<NodeId> place;                // ChildGraph's; a root has none.
    bool is_local = true;                     // ChildGraph's.
    std::shared_ptr<const MatchSet> matches;  // Null: not computed yet.
    bool is_clean = true;                     // ChildGraphsOptions::parent_is_clean.
    std::list<Id>::iterator position;         // In order_; roots have none.
  };
  void Hold(Id id, ChildGraph child);
  Held* Find(Id id);
  Held& MustFind(Id id);

  const RuleIndex search_rules_;
  const RuleIndex clean_up_rules_;
  const int64_t nodes_max_;
  std::vector<Recipe> recipes_;
  std::list<Id> order_;                                  // The last used one first.
  absl::flat_hash_map<Id, std::unique_ptr<Held>> held_;  // Roots always.
  int64_t nodes_held_ = 0;
  int made_again_ = 0;
};

}  // namespace ag
