// Makes a case on which a rule is wrong as small as possible. Pure functions.
#pragma once

#include <vector>

#include "rules/verify/instance.h"
#include "rules/verify/trial.h"

namespace ag {

struct FailingCase {
  std::vector<uint64_t> choices;  // The answers of the sample (rules/verify/choices.h).
  SampleOptions sample;
  CompareOptions compare;
};

struct SmallestCase {
  Trial trial;           // Refused with the same outcome as the original case.
  int64_t elements = 0;  // In all tensors of the source graph.
  uint64_t seed = 0;     // The seed of the values.
};

// Returns a smaller case: smaller sizes, attributes at their defaults, fewer roots, readers and
// operands, and small whole numbers as values. The rule stays refused on it. Deterministic; ends
// after a fixed number of tries. REQUIRES: the rule is refused on the case.
SmallestCase Shrink(const Rule& rule, const FailingCase& failing);

}  // namespace ag
