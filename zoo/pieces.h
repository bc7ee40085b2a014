// Pieces of models, for benchmarks. Pure functions.
#pragma once

#include "graph/graph.h"

namespace ag {

// Whether the node is an operator that runs: no leaf, and nothing that constants alone decide.
bool RunsHere(const Graph& graph, NodeId id);

// Returns the number of operators that run.
int Operators(const Graph& graph);

// Returns the first `nodes` nodes of the graph (leaves included); values that nothing reads become
// outputs.
StatusOr<Graph> FirstNodes(const Graph& graph, int nodes);

// Returns the first nodes that contain `operators` operators that run.
StatusOr<Graph> FirstOperators(const Graph& graph, int operators);

}  // namespace ag
