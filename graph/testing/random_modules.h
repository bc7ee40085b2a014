// Random graphs like a network's modules, for tests of the search: branches of convolutions or of
// products with matrices that share inputs, joined by sums, products and concats. Many rewrites
// apply in them. The same seed gives the same graph on every machine. Pure functions.
#pragma once

#include <cstdint>

#include "graph/graph.h"

namespace ag {

// Returns a graph of `operators` operators, constants apart. Tensors that nothing uses are its
// outputs. REQUIRES: operators > 0.
Graph RandomModules(uint64_t seed, int operators);

}  // namespace ag
