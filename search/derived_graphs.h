// The graphs of one search, held as recipes: a parent and the rewrite that leads from it. A search
// sees thousands of graphs of thousands of nodes and looks at few of them twice, so only roots and
// the graphs used last are held whole; any other is made again along its path when it is asked for.
// Not thread-safe.
#pragma once

#include <list>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "rules/rewrite.h"

namespace ag {

class DerivedGraphs {
 public:
  using Id = int32_t;

  // Nodes of the graphs held besides roots, in all: some 30 MB.
  static constexpr int64_t kNodesMax = 128 * 1024;

  // Borrows `rules`, which outlives it.
  explicit DerivedGraphs(const RuleSet& rules, int64_t nodes_max = kNodesMax)
      : rules_(rules), nodes_max_(nodes_max) {}

  Id AddRoot(Graph graph);
  // REQUIRES: `graph` is CleanUp(Apply(Get(parent), rewrite)).
  Id Add(Id parent, Rewrite rewrite, Graph graph);
  // The graph that was added as `id`, node by node.
  Graph Get(Id id);

  int made_again() const { return made_again_; }      // How many graphs Get had to make.
  int64_t nodes_held() const { return nodes_held_; }  // Without roots.

 private:
  struct Recipe {
    Id parent = -1;  // -1: a root.
    Rewrite rewrite;
    Graph root;
  };
  struct Held {
    Graph graph;
    std::list<Id>::iterator place;
  };
  void Hold(Id id, Graph graph);
  const Graph* Find(Id id);

  const RuleSet& rules_;
  const int64_t nodes_max_;
  std::vector<Recipe> recipes_;
  std::list<Id> order_;  // The last used first.
  absl::flat_hash_map<Id, Held> held_;
  int64_t nodes_held_ = 0;
  int made_again_ = 0;
};

}  // namespace ag
