// A rewrite cut out of its graph: the nodes that its rule matched as a graph of their own, and that
// graph rewritten. The smallest graph that can show what a rule does at one place. Pure functions.
#pragma once

#include <vector>

#include "rules/match/rewrite.h"

namespace ag {

struct LoneRewrite {
  // What the matched nodes read are inputs x0, x1, ... (constants stay), their roots are outputs
  // y0, y1, ...
  Graph before;
  Graph after;
};

// Returns the rewrite cut out of `graph`, for which it is valid. kFailedPrecondition: by
// themselves the nodes do not match, for a guard looked at what is around them.
StatusOr<LoneRewrite> CutOut(const Graph& graph, const Rewrite& rewrite);

// Returns at most `places_max` places of a rule in `graph`, also of a clean-up rule.
std::vector<Rewrite> PlacesOf(const Graph& graph, const Rule& rule, int places_max);

}  // namespace ag
