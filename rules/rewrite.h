// Finding and applying rewrites.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "rules/rule_set.h"

namespace ag {

// One place where a rule applies. Valid for the graph it was found in.
struct Rewrite {
  const Rule* rule = nullptr;
  std::vector<Edge> roots;  // The matched roots, ascending.
  int variant = 0;          // Which of several ways at the same roots. The three identify it.
  struct Bindings;
  std::shared_ptr<const Bindings> bindings;
};

// All rewrites of the search rules (not the clean-up ones) in `graph`, in one deterministic order:
// by rule, then by roots. k-ary rules give the maximal match and, up to `subsets_max`, smaller
// ones. REQUIRES: `rules` outlives the result, which points into it.
std::vector<Rewrite> FindRewrites(const Graph& graph, const RuleSet& rules, int subsets_max = 8);

// The graph after the rewrite. Same inputs, same outputs with the same types and names.
// kFailedPrecondition: it would make a cycle, or the target is ill-typed here (the rewrite does not
// apply after all); kInternal: anything else, a bug of the rule.
StatusOr<Graph> Apply(const Graph& graph, const Rewrite& rewrite);

struct CleanUpStep {
  std::string rule;
  int count = 0;
};
// What every graph goes through before it is searched or measured, the input included:
// graph/clean_up.h's passes and the clean-up rules (batch-norm and scale folding, composites
// recovered) until nothing changes. Constants that shrink are left as recipes. `steps`, when given,
// counts rule applications.
StatusOr<Graph> CleanUp(const Graph& graph, const RuleSet& rules,
                        std::vector<CleanUpStep>* steps = nullptr);

}  // namespace ag
