// Which rules made the nodes of rewritten graphs. A file's names say it, so what cannot be found
// out is left out. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/onnx/export/node_rules.h"
#include "rules/language/rule_set.h"
#include "search/search.h"

namespace ag {

// Returns the clean-up rules that made nodes of CleanUp(model, rules).
NodeRules RulesOfCleanUp(const Graph& model, const RuleSet& rules);

// Returns the rules behind the plan's graph. `before` are those of `input`, on which the plan's
// steps begin.
NodeRules RulesOfPlan(const NodeRules& before, const Graph& input, const FoundPlan& plan,
                      const RuleSet& rules);

// Returns the rules by node of `whole`, which holds `part`.
std::vector<std::string> RulesIn(const Graph& whole, const Graph& part,
                                 const std::vector<std::string>& rules);

}  // namespace ag
