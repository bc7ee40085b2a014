// Random graphs in which a rule may match: the verifier's test cases. Pure functions of their
// choices.
#pragma once

#include <optional>

#include "rules/language/pattern.h"
#include "rules/verify/instance_shapes.h"

namespace ag {

struct Instance {
  Graph graph;           // Its outputs are the roots, and sometimes inner values.
  int64_t elements = 0;  // Elements of all tensors together: the size of the case.
};

struct SampleOptions {
  int size = 4;  // Sizes of axes go up to about this.
  // The relative error of the rule's approximate constants ({1.41421356}) in the graph. The largest
  // error that the matcher tolerates shows its effect on a result.
  double drift = 0;
};

// Returns one instance, determined by the answers of `choices`. nullopt: the parts do not fit
// together. The matcher decides whether the rule really matches.
std::optional<Instance> SampleInstance(const RulePattern& pattern, Choices* choices,
                                       const SampleOptions& options);
std::optional<Instance> SampleInstance(const RulePattern& pattern, uint64_t seed, int size);

// Returns true when the source has a float constant that is not exact in binary, so that a match is
// an approximate one.
bool HasApproximateConstants(const RulePattern& pattern);

}  // namespace ag
