// Clean-up passes that need no rules. Each returns an equal graph with the same inputs and outputs.
// Pure functions.
#pragma once

#include "graph/graph.h"
#include "graph/weights.h"

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

// Replaces every constant recipe by a Constant and puts its bytes into `sink`. Keeps a recipe whose
// result is larger than both `folded_bytes_max` and its operands together.
StatusOr<Graph> FoldConstants(const Graph& graph, const WeightSource& weights, MemoryWeights* sink,
                              int64_t folded_bytes_max = int64_t{64} << 20);

// A graph without its opaque nodes, which cannot run. The values that an opaque node gives become
// extra inputs; the values that it reads become extra outputs, except inputs, constants and values
// of other opaque nodes. The rest can then be searched, measured and compared.
struct OpaqueCut {
  Graph graph;
  int opaque_nodes = 0;
};
// Cuts the opaque nodes out of the graph.
StatusOr<OpaqueCut> CutOpaque(const Graph& original);
// Puts `rewritten` back around the opaque nodes of `original`. `rewritten` has the inputs and
// outputs of the cut graph, in order. Constants that both sides read occur twice until Dedupe
// merges them. kInvalidArgument: other inputs or outputs, or a cycle, because a rewrite joined the
// operand of an opaque node with a reader of its result.
StatusOr<Graph> Stitch(const Graph& original, const Graph& rewritten);

}  // namespace ag
