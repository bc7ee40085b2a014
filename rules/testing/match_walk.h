// A random walk of rewrites. At each step it checks that MatchSet finds the same rewrites as a
// plain match of every rule. For tests and the bench. Pure functions.
#pragma once

#include <cstdint>

#include "graph/graph.h"
#include "rules/language/rule_set.h"
#include "rules/match/match_set.h"

namespace ag {

// Returns every match of every search rule in the order of FindRewrites, by the matcher alone, root
// after root, without an index and without kept matches.
std::vector<Rewrite> FindRewritesPlainly(const Graph& graph, const RuleSet& rules,
                                         int subsets_max = MatchSet::kSubsetsMax);

struct MatchWalkOptions {
  int steps = 10;
  uint64_t seed = 1;
  int nodes_max = 20'000;  // The walk ends when the graph has more.
};
struct MatchWalkCounts {
  int steps = 0;
  int64_t sites = 0;      // Sites of all steps together.
  int64_t forgotten = 0;  // Steps with some places hidden from MatchSet.
};
// Walks. Each step takes a random rewrite, compares GraphPatch's hash with the child's, goes to the
// child, and now and then hides the places of some nodes. kInternal: the two ways differ; the
// message has step, rule and roots.
Status WalkMatches(const Graph& graph, const RuleSet& rules, const MatchWalkOptions& options,
                   MatchWalkCounts* counts);

}  // namespace ag
