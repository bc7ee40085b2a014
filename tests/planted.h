// Ten wrong rewrites, mistakes that optimizers have shipped. They apply to any graph with a
// convolution or matrix product whose weights are constant, so that every zoo model can be attacked
// with all of them; the equivalence gate must catch each one. Pure functions.
//
// The gate finds differences beyond its tolerance, 1e-3 of the largest output. Weights of one
// convolution in the middle of tiny_nasnet scaled by 1.05 change the output by less and pass, so
// the planted scale is 2. A change without effect is not planted: a bias of zeros, or of the keys
// of attention.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/weights.h"

namespace ag {

struct PlantedBug {
  std::string name;
  // Returns the graph with the mistake at the `place`-th node it fits (0: the first). kNotFound:
  // fewer places.
  std::function<StatusOr<Graph>(const Graph&, int place, MemoryWeights*)> apply;
};
const std::vector<PlantedBug>& PlantedBugs();

// Returns how many places `bug` fits in `graph`.
int PlacesOf(const PlantedBug& bug, const Graph& graph);

}  // namespace ag
