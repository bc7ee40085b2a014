// Clean-up passes that need no rules. Each returns an equal graph with the same inputs and outputs.
// Pure functions.
#pragma once

#include "graph/graph.h"

namespace ag {

// Merges nodes with the same operator, attributes and operands (common subexpressions, equal
// constants) and puts the operands of commutative operators into one fixed order. Never merges
// opaque nodes: they may have effects, or be random.
StatusOr<Graph> Dedupe(const Graph& graph);

// Removes nodes that change nothing: identity transpose, reshape, expand, slice, pad and cast,
// concat of one, split into one, reduction over no axes. Merges chains of reshapes and of
// transposes.
StatusOr<Graph> RemoveNoOps(const Graph& graph);
// Returns true when RemoveNoOps would remove or merge the node.
bool IsRemovable(const Graph& graph, NodeId id);

}  // namespace ag
