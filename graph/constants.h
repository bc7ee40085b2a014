// The constants of a graph for one build of a plan: what was computed from a recipe is kept, so
// that each is made real once. One thread.
#pragma once

#include <map>

#include "graph/graph.h"
#include "graph/weights.h"

namespace ag {

class Constants {
 public:
  // Borrows both, which outlive it.
  Constants(const Graph& graph, const WeightSource& weights) : graph_(graph), weights_(weights) {}

  // kInvalidArgument: the edge is not constant. The codes of Materialize.
  StatusOr<Tensor> Get(Edge edge);

 private:
  const Graph& graph_;
  const WeightSource& weights_;
  std::map<Edge, Tensor> known_;
};

}  // namespace ag
