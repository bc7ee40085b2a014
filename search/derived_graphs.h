// The graphs of one search, held as recipes: a parent and the rewrite that leads from it. A search
// sees thousands of graphs of thousands of nodes and looks at few of them twice, so only roots and
// the graphs used last are held whole; any other is made again along its path when it is asked for.
// Not thread-safe.
#pragma once

#include <list>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "rules/child_graphs.h"
#include "rules/match_set.h"

namespace ag {

class DerivedGraphs {
 public:
  using Id = int32_t;

  // Nodes of the graphs held besides roots, in all: some 30 MB.
  static constexpr int64_t kNodesMax = 128 * 1024;

  // Borrows `rules`, which outlives it.
  explicit DerivedGraphs(const RuleSet& rules, int64_t nodes_max = kNodesMax)
      : rules_(rules),
        search_rules_(rules, RuleIndex::Kind::kSearch),
        clean_up_rules_(rules, RuleIndex::Kind::kCleanUp),
        nodes_max_(nodes_max) {}

  Id AddRoot(Graph graph);
  // REQUIRES: `child` is what Children(parent) makes of `rewrite`.
  Id Add(Id parent, Rewrite rewrite, ChildGraph child);
  // The graph that was added as `id`, node by node.
  Graph Get(Id id);

  // Where its parent's nodes stand in it: ChildGraph::place. Valid until the next call.
  // REQUIRES: no root.
  const std::vector<NodeId>& Place(Id id) { return MustFind(id).place; }

  // Its rewrites: from its parent's where those are at hand, else by matching everywhere.
  std::shared_ptr<const MatchSet> Matches(Id id);
  // Makes its children, cleaned up, of at most `size_max` nodes before that.
  ChildGraphs Children(Id id, int size_max = INT32_MAX);

  int made_again() const { return made_again_; }      // How many graphs Get had to make.
  int64_t nodes_held() const { return nodes_held_; }  // Without roots.

 private:
  struct Recipe {
    Id parent = -1;  // -1: a root.
    Rewrite rewrite;
  };
  struct Held {
    Graph graph;
    std::vector<NodeId> place;                // ChildGraph::place.
    std::shared_ptr<const MatchSet> matches;  // Null until asked for.
    bool is_clean = true;                     // ChildGraphsOptions::parent_is_clean.
    std::list<Id>::iterator position;         // In order_; roots stand in no order.
  };
  void Hold(Id id, ChildGraph child);
  Held* Find(Id id);
  Held& MustFind(Id id);

  const RuleSet& rules_;
  const RuleIndex search_rules_;
  const RuleIndex clean_up_rules_;
  const int64_t nodes_max_;
  std::vector<Recipe> recipes_;
  std::list<Id> order_;                                  // The last used first.
  absl::flat_hash_map<Id, std::unique_ptr<Held>> held_;  // Roots for ever.
  int64_t nodes_held_ = 0;
  int made_again_ = 0;
};

}  // namespace ag
