// A random walk of rewrites that checks at each step that MatchSet finds what a plain match of
// every rule finds. For tests and the bench.
#pragma once

#include <cstdint>

#include "graph/graph.h"
#include "rules/match_set.h"
#include "rules/rule_set.h"

namespace ag {

// Every match of every search rule by the matcher alone, root after root: no index, nothing kept.
// The same order as FindRewrites.
std::vector<Rewrite> FindRewritesPlainly(const Graph& graph, const RuleSet& rules,
                                         int subsets_max = MatchSet::kSubsetsMax);

struct MatchWalkOptions {
  int steps = 10;
  uint64_t seed = 1;
  int nodes_max = 20'000;  // The walk ends when the graph has grown beyond.
};
struct MatchWalkCounts {
  int steps = 0;
  int64_t sites = 0;      // Seen at all steps together.
  int64_t forgotten = 0;  // Steps whose places were partly hidden from MatchSet.
};
// kInternal: says at which step, rule and roots the two differ. The walk takes a rewrite at random,
// checks the hash that GraphPatch gives of its child before it is made, goes to the child, and now
// and then hides where some nodes stand.
Status WalkMatches(const Graph& graph, const RuleSet& rules, const MatchWalkOptions& options,
                   MatchWalkCounts* counts);

}  // namespace ag
