// Makes a case on which a rule is wrong as small as it gets.
#pragma once

#include <string>
#include <vector>

#include "rules/instance.h"
#include "rules/trial.h"

namespace ag {

struct FailingCase {
  std::vector<uint64_t> choices;  // Of the draw, rules/choices.h.
  DrawOptions draw;
  CompareOptions compare;
};

struct SmallestCase {
  Trial trial;           // Refused, in the same way as the case that was handed in.
  int64_t elements = 0;  // Of all tensors of the source graph.
  uint64_t seed = 0;     // Of the values.
};

// Sizes go down, attributes to their defaults, roots, readers and operands away, and values to
// small whole numbers, as long as the rule stays refused. Deterministic; ends after a fixed number
// of tries. REQUIRES: the rule is refused on the case.
SmallestCase Shrink(const Rule& rule, const FailingCase& failing);

}  // namespace ag
