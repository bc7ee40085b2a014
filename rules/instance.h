// Random graphs in which a rule may match: the verifier's test cases.
#pragma once

#include <optional>

#include "rules/instance_shapes.h"
#include "rules/pattern.h"

namespace ag {

struct Instance {
  Graph graph;           // Its outputs are the roots, sometimes also what is between.
  int64_t elements = 0;  // Of all tensors together: how large the case is.
};

struct DrawOptions {
  int size = 4;  // Sizes of axes go up to about this.
  // The rule's approximate constants ({1.41421356}) are drawn this much off, relative: as large as
  // the matcher tolerates shows what the tolerance may do to a result.
  double drift = 0;
};

// One draw, fully determined by what `choices` answers. nullopt when the parts do not fit together.
// Whether the rule really matches is for the matcher to say.
std::optional<Instance> DrawInstance(const RulePattern& pattern, Choices* choices,
                                     const DrawOptions& options);
std::optional<Instance> DrawInstance(const RulePattern& pattern, uint64_t seed, int size);

// The source has a float constant that is not exact in binary, so that a match is a near one.
bool HasApproximateConstants(const RulePattern& pattern);

}  // namespace ag
