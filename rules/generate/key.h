// Texts that are equal for graphs which compute the same in the same way.
#pragma once

#include <cstdint>
#include <string>

#include "graph/graph.h"
#include "rules/pattern.h"

namespace ag::generate {

using OpMask = uint64_t;  // Operators, as bits of OpKind.
inline OpMask MaskOf(OpKind op) { return OpMask{1} << static_cast<int>(op); }

// Of a graph, leaves included.
OpMask OpsIn(const Graph& graph);
// Operators that a graph must have for the rule to match.
OpMask OpsIn(const RulePattern& pattern);

// Equal for graphs with the same inputs that differ in the order of commutative operands alone,
// and in the grouping of what is in `grouped`: chains of one binary operator, concats along one
// axis. Constants of zeros are all alike.
std::string KeyOf(const Graph& graph, OpMask grouped = 0);

}  // namespace ag::generate
