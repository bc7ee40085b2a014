// A piece of a graph as a graph of its own. Pure functions.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"

namespace ag {

struct GraphPiece {
  // Its inputs are what the piece reads of elsewhere, in the order of their edges. Its outputs are
  // the outputs of the whole that it computes, in the order of these, then what else is read of it
  // elsewhere, in the order of the edges. Constants are its own.
  Graph graph;
  std::vector<Edge> inputs, outputs;  // The edges in the whole of the piece's inputs and outputs.
};

// Returns the piece of the operators `nodes`, ascending, none of them constant. The piece of all
// operators is the graph itself. REQUIRES: no path between two of them leaves the piece.
GraphPiece PieceOf(const Graph& graph, std::span<const NodeId> nodes);

}  // namespace ag
