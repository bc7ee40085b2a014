// Clean-up passes that need no rules. Each returns an equal graph with the same inputs and outputs.
// `place` is set as by GraphBuilder::Build; nothing sets it where the graph itself is returned.
// Pure functions.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "graph/patch.h"

namespace ag {

// Merges nodes with the same operator, attributes and operands (common subexpressions, equal
// constants) and puts the operands of commutative operators into one fixed order. Never merges
// opaque nodes: they may have effects, or be random. Of its result it returns the same.
StatusOr<Graph> Dedupe(const Graph& graph, std::vector<NodeId>* place = nullptr);

// Removes nodes that change nothing: identity transpose, reshape, expand, slice, pad and cast,
// concat of one, split into one, reduction over no axes. Merges chains of reshapes and of
// transposes.
StatusOr<Graph> RemoveNoOps(const Graph& graph, std::vector<NodeId>* place = nullptr);
// Does the same to what the patch changes of a graph in which nothing is removable. Leaves a cycle
// as it is.
Status RemoveNoOps(GraphPatch* patch);
// Return true when RemoveNoOps would remove or merge the node, or any.
bool IsRemovable(const Graph& graph, NodeId id);
bool HasRemovable(const Graph& graph);

}  // namespace ag
