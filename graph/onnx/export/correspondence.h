// Which nodes of a rewritten graph repeat nodes of the graph that it came from. Rules make new
// nodes without a word about the old ones, and graphs cross processes as canonical bytes without
// names, so the correspondence is found again from the two graphs, when names are wanted. Pure
// functions.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace ag {

// Returns for each node of `after` the node of `before` that it repeats, or -1. Two nodes
// correspond when operator, attributes, result types and constant operands are equal, and either
// all that they read is equal too, or they read constants and no other node of their graph is like
// them, or they stand in the same place beside nodes that correspond. No node corresponds to two.
// Linear in nodes and edges, but for the sorting of equal nodes.
std::vector<NodeId> Correspondence(const Graph& before, const Graph& after);

}  // namespace ag
