// Search for a path of rules from one graph to another, breadth first. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "rules/language/rule_set.h"

namespace ag {

struct ReachOptions {
  int steps_max = 3;
  int graphs_max = 4000;  // The search gives up after this many graphs.
  bool regroup = true;    // Sums and products are equal in any grouping.
};

struct ReachPath {
  std::vector<std::string> rules;  // Names of the rules, in order; empty: the graphs are equal.
  bool regrouped = false;          // Sums or products have another order or grouping.
};

// Returns the shortest path from `from` to `to` by `rules`, also clean-up rules; the clean-up
// passes run after each step, and rules are tried in order. Graphs are equal when their TasoForm
// is: first as written, then, with `regroup`, regrouped. nullopt: no path within the limits.
// REQUIRES: the graphs have the same inputs and outputs.
std::optional<ReachPath> FindReachPath(const Graph& from, const Graph& to, const RuleSet& rules,
                                       const ReachOptions& options = {});

}  // namespace ag
