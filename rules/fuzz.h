// The fuzzer of the rule set: random graphs, random applicable rewrites one after another, each
// result compared exactly with the graph before it. Where the verifier tries one rule at one place,
// this tries what rules do to each other's results and to what stands around them.
#pragma once

#include <map>
#include <string>

#include "rules/rule_set.h"

namespace ag {

struct FuzzOptions {
  uint64_t seed = 1;   // Of the first graph; each further graph takes the next.
  int rewrites = 300;  // Ends with the graph that reaches it.
};

struct FuzzReport {
  int64_t graphs = 0, rewrites = 0;
  int64_t exact = 0;  // Rewrites compared in exact arithmetic; the others in double.
  // No arithmetic computes the graph; or the rule is not exact, and Inf or NaN stands in the graph.
  int64_t undecided = 0;
  int64_t refused = 0;  // Apply refused: the target does not fit there, or closes a cycle.
  std::map<std::string, int64_t> by_rule;
  uint64_t seed = 0;       // Of the graph at fault.
  std::string difference;  // The rule, both graphs, where they differ; "" when all was equal.
};

// Stops at the first difference. `rules` may be clean-up rules too: they are applied one at a time
// as the others are, and every last graph also goes through CleanUp. Deterministic.
FuzzReport Fuzz(const RuleSet& rules, const FuzzOptions& options);

}  // namespace ag
