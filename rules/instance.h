// Random graphs in which a rule may match: the verifier's test cases.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "rules/instance_shapes.h"
#include "rules/pattern.h"

namespace ag {

struct Instance {
  Graph graph;                    // Its outputs are the roots, sometimes also what is between.
  std::set<std::string> classes;  // "group > 1", "dilated", ...: what kind of case it is.
  int64_t elements = 0;           // Of all tensors together: how large the case is.
};

// One draw, fully determined by `seed`; sizes of axes go up to about `size`. nullopt when the parts
// do not fit together. Whether the rule really matches is for the matcher to say.
std::optional<Instance> DrawInstance(const RulePattern& pattern, uint64_t seed, int size);

// What kind of case a graph is, for the verifier's coverage counts.
std::set<std::string> ClassesOf(const Graph& graph);

}  // namespace ag
