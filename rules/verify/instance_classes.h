// Kinds of instances on which published rule sets were wrong. A proof must have seen each kind that
// applies to its rule. Pure functions.
#pragma once

#include <set>
#include <span>
#include <string>

#include "rules/language/pattern.h"

namespace ag {

// Returns the classes of the matched nodes: "broadcast", "group > 1", "depthwise", "uneven cuts",
// "axis of size 1", "asymmetric pads", "dilated", "strided", "batch > 1"; and, for information,
// "three or more roots", "scalar", "integers".
std::set<std::string> ClassesOf(const Graph& graph, std::span<const NodeId> nodes);

// Returns those of the first nine classes that the operators and attributes of the sources allow. A
// literal attribute (group=1) excludes its class, operands of one shape exclude "broadcast". The
// verifier finds the classes that guards exclude by sampling.
std::set<std::string> ApplicableClasses(const RulePattern& pattern);

}  // namespace ag
