// Random well-typed graphs for property tests and fuzzers. The same seed gives the same graph on
// every machine. Pure functions, except for `weights`.
#pragma once

#include <cstdint>

#include "graph/graph.h"
#include "graph/weights.h"

namespace ag {

struct RandomGraphOptions {
  int nodes = 12;       // Operators to try; the graph has fewer when some are ill-typed or dead.
  bool opaque = false;  // Adds an opaque node now and then.
};

// Returns a random graph. Puts its constants into `weights` when it is not null.
Graph RandomGraph(uint64_t seed, MemoryWeights* weights, const RandomGraphOptions& options = {});

}  // namespace ag
