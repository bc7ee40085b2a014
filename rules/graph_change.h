// What differs between a graph and the one that a rewrite made of it, as far as matching can tell.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace ag {

struct GraphChange {
  // Nodes of the new graph that a match may see otherwise than before: new ones, and those with
  // another operand, or whose values became constant, single-use or neither. Ascending.
  std::vector<NodeId> changed;
  // All nodes at most `reach` operands above a changed one, with that distance; ascending by it.
  std::vector<std::pair<NodeId, int>> above;
};

// `place`[p] says where a copy of node p of `before` stands in `after`, -1 when there is none (or
// none is known, which costs time only). Ids beyond `before` are not looked at.
GraphChange FindChange(const Graph& before, const Graph& after, std::span<const NodeId> place,
                       int reach);

}  // namespace ag
