// Kinds of instances that published rule sets went wrong on. A proof must have seen each kind that
// applies to its rule.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "rules/pattern.h"

namespace ag {

// What kinds of case the matched nodes are: "broadcast", "group > 1", "depthwise", "uneven cuts",
// "axis of size 1", "asymmetric pads", "dilated", "strided", "batch > 1"; and, for information,
// "three or more roots", "scalar", "integers".
std::set<std::string> ClassesOf(const Graph& graph, std::span<const NodeId> nodes);

// The classes that the operators and attributes of the sources leave open, of the first nine. A
// literal attribute (group=1) closes its class, operands of one shape close "broadcast". What
// guards close is for the verifier to find out by drawing.
std::set<std::string> ApplicableClasses(const RulePattern& pattern);

}  // namespace ag
