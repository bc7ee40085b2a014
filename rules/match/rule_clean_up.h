// Clean-up by rules and passes. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "rules/language/rule_set.h"

namespace ag {

struct CleanUpStep {
  std::string rule;
  int count = 0;
};
// Returns the graph in the form in which every graph, also the input, is searched and measured. It
// runs the passes of graph/passes/clean_up.h and the clean-up rules (folding of batch norms and
// scales, recovery of composites) until nothing changes. Constants that shrink stay recipes.
// `steps`, when given, counts rule applications.
StatusOr<Graph> CleanUp(const Graph& graph, const RuleSet& rules,
                        std::vector<CleanUpStep>* steps = nullptr);

}  // namespace ag
