// One rule tried on one graph: the step of a proof. Pure functions.
#pragma once

#include <set>
#include <string>

#include "rules/language/rule_set.h"
#include "rules/verify/compare.h"

namespace ag {

struct Trial {
  enum class Outcome : uint8_t {
    kNoMatch,    // The rule does not apply there.
    kUndecided,  // It applies, but no arithmetic computes the graph, or it makes a cycle.
    kHolds,
    kIllTyped,  // The target's type differs from the source's, or it has none.
    kDiffers
  };
  Outcome outcome = Outcome::kNoMatch;
  Arithmetic arithmetic = Arithmetic::kField;  // The weakest one that was needed.
  double float_error = 0;                      // The largest Comparison::float_error.
  std::set<std::string> classes;               // Classes of the matched places.
  std::string what;                            // For kIllTyped: "the target has type ...".
  std::string text;  // For kIllTyped, kDiffers: both graphs, the difference, the input values.

  bool refused() const { return outcome == Outcome::kIllTyped || outcome == Outcome::kDiffers; }
};

// Applies `rule` at every place of `before` where it matches, one at a time, and compares. Stops at
// the first refusal. A rule of class exact must give identical doubles, also for inputs with Inf
// and NaN.
Trial TryRule(const Rule& rule, const Graph& before, const CompareOptions& options);

}  // namespace ag
