// Whether rules rewrite one graph into another, by breadth-first search.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "rules/rule_set.h"

namespace ag {

struct ReachOptions {
  int steps_max = 3;
  int graphs_max = 4000;  // Graphs looked at before the search gives up.
  bool regroup = true;    // Sums and products count as equal in any grouping.
};

struct ReachPath {
  std::vector<std::string> rules;  // Names of the rules, in order; empty: they are the same.
  bool regrouped = false;          // Sums or products stand in another order or grouping.
};

// The shortest way from `from` to `to` by the rules of `rules`, clean-up rules included, each step
// followed by the clean-up passes; rules are tried in their order. The graphs are the same when
// their TasoForm is: first as written, else, with `regroup`, regrouped. nullopt: none within the
// limits. REQUIRES: the graphs have the same inputs and outputs.
std::optional<ReachPath> FindReachPath(const Graph& from, const Graph& to, const RuleSet& rules,
                                       const ReachOptions& options = {});

}  // namespace ag
