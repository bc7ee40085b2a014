// The best of the graphs that a strategy of the search meets. One thread at a time.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "graph/structure_hash.h"
#include "rules/match/rule_index.h"
#include "search/rewrite_trail.h"

namespace ag {

struct RankedGraph {
  Graph graph;
  double estimate_ns = 0;           // kNoTimeNs: it needs a group whose measurement failed.
  int step = RewriteTrail::kInput;  // The graph's step in the trail.
};

// Estimate, then hash: one total order of graphs.
using GraphKey = std::pair<double, StructureHash>;

class BestGraphs {
 public:
  // Keeps up to `graphs_max` graphs.
  explicit BestGraphs(int graphs_max) : graphs_max_(graphs_max) {}

  void Offer(const Graph& graph, const GraphKey& key, int step);

  // Returns the graphs with the least estimates, ascending and cleaned up: in the search
  // commutative operands have the order of the parent's, outside they have one fixed order.
  std::vector<RankedGraph> Take(const RuleIndex& clean_up);

 private:
  const int graphs_max_;
  std::map<GraphKey, RankedGraph> best_;
};

// Returns the best of both lists, each structure once, ascending and at most `graphs_max`. Of equal
// estimates those of `first` come first.
std::vector<RankedGraph> BestOf(std::vector<RankedGraph> first, std::vector<RankedGraph> second,
                                int graphs_max);

}  // namespace ag
