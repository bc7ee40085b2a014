// Clean-up by rules and passes. Pure functions.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "rules/language/rule_set.h"
#include "rules/match/rule_index.h"

namespace ag {

struct CleanUpStep {
  std::string rule;
  int count = 0;
};
// Called with a graph that applications of a rule made, and the rule's name.
using OnRewritten = std::function<void(const Graph& after, const std::string& rule)>;

// Returns the graph in the form in which every graph, also the input, is searched and measured. It
// runs the passes of graph/passes/clean_up.h and the clean-up rules (folding of batch norms and
// scales, recovery of composites) until nothing changes. Constants that shrink stay recipes.
// `steps`, when given, counts rule applications, and `on_rewritten` is told of them in order.
StatusOr<Graph> CleanUp(const Graph& graph, const RuleSet& rules,
                        std::vector<CleanUpStep>* steps = nullptr,
                        const OnRewritten& on_rewritten = {});
// Returns the same by the index of the clean-up rules, for many graphs.
StatusOr<Graph> CleanUp(const Graph& graph, const RuleIndex& clean_up,
                        std::vector<CleanUpStep>* steps = nullptr,
                        const OnRewritten& on_rewritten = {});

// Whether all that a match of the rule sees is near its one root.
bool IsLocal(const IndexedRule& rule);

// Returns the same of a graph that a rewrite made. `place` is the place in `graph` of each node of
// the rewrite's graph, or -1; each becomes that in the result; -1: the node was removed or
// replaced. `parent` is that graph, or null; rules are matched only near what differs from it.
// REQUIRES: `parent` is null, or CleanUp would change nothing in it but the order of commutative
// operands, and all rules are local.
StatusOr<Graph> CleanUpChild(const Graph& graph, const RuleIndex& clean_up, const Graph* parent,
                             std::vector<NodeId>* place);

}  // namespace ag
