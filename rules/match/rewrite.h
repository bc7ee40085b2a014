// Finding and applying rewrites. Pure functions.
#pragma once

#include <memory>
#include <vector>

#include "graph/graph.h"
#include "rules/language/bindings.h"
#include "rules/language/rule_set.h"

namespace ag {

// One place where a rule applies, valid for its graph only.
struct Rewrite {
  const Rule* rule = nullptr;
  std::vector<Edge> roots;  // The matched roots, ascending.
  int variant = 0;          // One of several ways at the same roots. These three identify it.
  std::shared_ptr<const Bindings> bindings;
};

// Returns all rewrites of the search rules (not the clean-up rules) in `graph`, in a deterministic
// order: by rule, then by roots. A k-ary rule gives the largest match and up to `subsets_max`
// smaller ones. REQUIRES: `rules` outlives the result, which points into it.
std::vector<Rewrite> FindRewrites(const Graph& graph, const RuleSet& rules, int subsets_max = 8);

// Returns the graph after the rewrite, with the same inputs, and the same outputs with their types
// and names. kFailedPrecondition: the rewrite would make a cycle, or the target is ill-typed here.
// kInternal: any other error, a bug of the rule.
StatusOr<Graph> Apply(const Graph& graph, const Rewrite& rewrite);

}  // namespace ag
