// Clean-up passes that need no rules. Each returns an equal graph with the same inputs and outputs.
#pragma once

#include "graph/graph.h"
#include "graph/weights.h"

namespace ag {

// Merges nodes with equal operator, attributes and operands (common subexpressions, equal
// constants), commutative operands in one order.
StatusOr<Graph> Dedupe(const Graph& graph);

// Removes what changes nothing: identity transpose, reshape, expand, slice, pad, cast, concat of
// one, split into one; merges chains of reshapes and of transposes.
StatusOr<Graph> RemoveNoOps(const Graph& graph);
// Whether RemoveNoOps does something at the node.
bool IsRemovable(const Graph& graph, NodeId id);

// Replaces every constant recipe by a Constant, whose bytes go into `sink`. Nothing is folded whose
// result is larger than `folded_bytes_max` unless it is no larger than its operands together.
StatusOr<Graph> FoldConstants(const Graph& graph, const WeightSource& weights, MemoryWeights* sink,
                              int64_t folded_bytes_max = int64_t{64} << 20);

// Graphs with opaque nodes cannot run; this cuts them out. Every value that an opaque node reads
// (but inputs, constants and values of other opaque nodes) becomes an extra output, every value it
// gives an extra input, so that what is left can be searched, measured and compared. Stitch puts
// `rewritten` (same inputs and outputs as cut.graph, in order) back around the opaque nodes of
// `original`; constants that both sides read stand twice until Dedupe merges them. kInvalidArgument
// (Stitch): other inputs or outputs, or a rewrite joined what an opaque node reads with what
// depends on it, which closes a cycle.
struct OpaqueCut {
  Graph graph;
  int opaque_nodes = 0;
};
StatusOr<OpaqueCut> CutOpaque(const Graph& original);
StatusOr<Graph> Stitch(const Graph& original, const Graph& rewritten);

}  // namespace ag
