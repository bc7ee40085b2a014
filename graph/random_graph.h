// Random well-typed graphs, for property tests and fuzzers of any room. The same seed gives the
// same graph on every machine.
#pragma once

#include <cstdint>

#include "graph/graph.h"
#include "graph/weights.h"

namespace ag {

struct RandomGraphOptions {
  int nodes = 12;       // Operators to try; some may end up dead and vanish.
  bool opaque = false;  // Now and then an opaque node.
};

// Constants are put into `weights` when it is not null.
Graph RandomGraph(uint64_t seed, MemoryWeights* weights, const RandomGraphOptions& options = {});

}  // namespace ag
