// Texts that are equal for graphs with the same computation. Pure functions.
#pragma once

#include <bitset>
#include <string>

#include "graph/graph.h"
#include "rules/language/pattern.h"

namespace ag::generate {

using OpMask = std::bitset<kOpKindCount>;  // Operators, as bits of OpKind.
inline OpMask MaskOf(OpKind op) { return OpMask().set(static_cast<size_t>(op)); }

// Returns the operators of a graph, with leaves.
OpMask OpsIn(const Graph& graph);
// Returns the operators that a graph needs for a match of the rule.
OpMask OpsIn(const RulePattern& pattern);

// Returns a text that is equal for graphs with the same inputs that differ only in the order of
// commutative operands, and in the grouping of operators in `grouped`: chains of one binary
// operator, or concats along one axis. All constants of zeros are alike.
std::string KeyOf(const Graph& graph, OpMask grouped = {});

}  // namespace ag::generate
