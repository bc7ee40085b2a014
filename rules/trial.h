// One rule tried on one graph: the step of a proof.
#pragma once

#include <set>
#include <string>

#include "rules/compare.h"
#include "rules/rule_set.h"

namespace ag {

struct Trial {
  enum class Outcome : uint8_t {
    kNoMatch,    // The rule does not apply there.
    kUndecided,  // It applies, but no arithmetic computes the graph, or the target closes a cycle.
    kHolds,
    kIllTyped,  // The target has another type than the source, or none.
    kDiffers
  };
  Outcome outcome = Outcome::kNoMatch;
  Arithmetic arithmetic = Arithmetic::kField;  // The weakest that was needed.
  double float_error = 0;                      // As Comparison::float_error, the largest.
  std::set<std::string> classes;               // Of the matched places, rules/instance_classes.h.
  std::string what;                            // Why kIllTyped: "the target has type ...".
  std::string text;  // kIllTyped, kDiffers: both graphs, where they differ, the values put in.

  bool refused() const { return outcome == Outcome::kIllTyped || outcome == Outcome::kDiffers; }
};

// Applies `rule` at every place of `before` where it matches, one at a time, and compares; stops at
// the first refusal. A rule of class exact must give the very same doubles, also with Inf and NaN
// put in.
Trial TryRule(const Rule& rule, const Graph& before, const CompareOptions& options);

}  // namespace ag
