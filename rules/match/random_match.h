// A random place for a random rule, for walks through rewrites. Pure functions.
#pragma once

#include "base/random.h"
#include "graph/graph.h"
#include "rules/language/rule_set.h"
#include "rules/match/matcher.h"

namespace ag {

// One rule and one of its matches; no rule: none matches.
struct RandomMatch {
  const Rule* rule = nullptr;
  Bindings bindings;
};

// Returns a random match of a random rule among those that match. The rule set must outlive it.
RandomMatch ChooseMatch(const Graph& graph, const RuleSet& rules, Random& random);

}  // namespace ag
