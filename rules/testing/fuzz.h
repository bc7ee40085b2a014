// The fuzzer of the rule set: random graphs and random applicable rewrites, one after another. Each
// result is compared exactly with the graph before. The verifier tries one rule at one place; the
// fuzzer tests what rules do to the results of others and to the nodes around them. Pure functions.
#pragma once

#include <map>
#include <string>

#include "rules/language/rule_set.h"

namespace ag {

struct FuzzOptions {
  uint64_t seed = 1;   // The seed of the first graph; each further graph takes the next one.
  int rewrites = 300;  // Ends after the graph that reaches it.
};

struct FuzzReport {
  int64_t graphs = 0, rewrites = 0;
  int64_t exact = 0;  // Rewrites compared in exact arithmetic; the others in double.
  // No arithmetic computes the graph; or the rule is not exact, and the graph has an Inf or a NaN.
  int64_t undecided = 0;
  int64_t refused = 0;  // Apply refused: the target does not fit, or makes a cycle.
  std::map<std::string, int64_t> by_rule;
  uint64_t seed = 0;       // The seed of the graph with the difference.
  std::string difference;  // The rule, both graphs and the difference; "": none.
};

// Runs until the first difference. `rules` may have clean-up rules: each is applied alone like the
// others, and the last graph of each walk also goes through CleanUp. Deterministic.
FuzzReport Fuzz(const RuleSet& rules, const FuzzOptions& options);

}  // namespace ag
