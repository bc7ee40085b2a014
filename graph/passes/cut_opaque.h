// Opaque nodes, cut out of a graph and put back. Pure functions.
#pragma once

#include <functional>

#include "graph/graph.h"

namespace ag {

// Whether an opaque node is to be cut out, since the device cannot run it.
using IsCut = std::function<bool(const Node&)>;

// A graph without its opaque nodes that cannot run. The values that an opaque node gives become
// extra inputs; the values that it reads become extra outputs, except inputs, constants and values
// of other opaque nodes. The rest can then be searched, measured and compared.
struct OpaqueCut {
  Graph graph;
  std::vector<NodeId> nodes;  // Those cut out, in the original.
};
// Cuts the opaque nodes that `is_cut` names out of the graph.
StatusOr<OpaqueCut> CutOpaque(const Graph& original, const IsCut& is_cut);
// Puts `rewritten` back around these nodes of `original`. `rewritten` has the inputs and
// outputs of the cut graph, in order. Constants that both sides read occur twice until Dedupe
// merges them. kInvalidArgument: other inputs or outputs, or a cycle, because a rewrite joined the
// operand of an opaque node with a reader of its result.
StatusOr<Graph> Stitch(const Graph& original, const Graph& rewritten, const IsCut& is_cut);

}  // namespace ag
