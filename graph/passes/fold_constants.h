// Constant folding. Pure functions.
#pragma once

#include "graph/graph.h"
#include "graph/weights.h"

namespace ag {

// Replaces every constant recipe by a Constant and puts its bytes into `sink`. Keeps a recipe whose
// result is larger than both `folded_bytes_max` and its operands together.
StatusOr<Graph> FoldConstants(const Graph& graph, const WeightSource& weights, MemoryWeights* sink,
                              int64_t folded_bytes_max = int64_t{64} << 20);

}  // namespace ag
