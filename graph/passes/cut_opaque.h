// Opaque nodes, cut out of a graph and put back. Pure functions.
#pragma once

#include "graph/graph.h"

namespace ag {

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
