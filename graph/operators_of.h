// What of a graph runs. Pure functions.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace ag {

// Returns the operators that run, ascending: all nodes that are no inputs and not constant.
std::vector<NodeId> OperatorsOf(const Graph& graph);

}  // namespace ag
