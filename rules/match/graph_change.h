// The difference between a graph and its rewritten graph, as far as matching depends on it. Pure
// functions.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace ag {

struct GraphChange {
  // Nodes of the new graph that a match may see differently: new ones, and those with another
  // operand, or with outputs that became constant or single-use, or stopped being so. Ascending.
  std::vector<NodeId> changed;
  // All nodes at most `reach` operands above a changed one, with that distance; ascending by it.
  std::vector<std::pair<NodeId, int>> above;
};

// Returns the change. place[p] is the copy in `after` of node p of `before`; -1: there is none, or
// it is unknown, which only costs time. Entries beyond the nodes of `before` are ignored.
GraphChange FindChange(const Graph& before, const Graph& after, std::span<const NodeId> place,
                       int reach);

}  // namespace ag
