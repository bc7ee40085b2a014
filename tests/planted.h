// Ten wrong rewrites, each a mistake that optimizers have shipped. They apply to any graph with a
// convolution or matrix product whose weights are constant, so that every zoo model can be attacked
// with all of them, and the equivalence gate must catch each one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/weights.h"

namespace ag {

struct PlantedBug {
  std::string name;
  // The graph with the mistake at the `place`-th node it fits (0: the first). kNotFound: fewer
  // places than that.
  std::function<StatusOr<Graph>(const Graph&, int place, MemoryWeights*)> apply;
};
const std::vector<PlantedBug>& PlantedBugs();

// How many places `bug` fits in `graph`.
int PlacesOf(const PlantedBug& bug, const Graph& graph);

}  // namespace ag
