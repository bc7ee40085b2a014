// The constants of a graph for one build of a plan: what was computed from a recipe is kept, so
// that each is made real once. One thread.
#pragma once

#include <map>
#include <optional>

#include "graph/graph.h"
#include "graph/weights.h"

namespace ag {

class Constants {
 public:
  // Borrows both, which outlive it.
  Constants(const Graph& graph, const WeightSource& weights) : graph_(graph), weights_(weights) {}

  // kInvalidArgument: the edge is not constant. The codes of Materialize.
  StatusOr<Tensor> Get(Edge edge);

  // A name for the value: equal for equal recipes over equal bytes, in any graph. Nothing when the
  // source's digests do not name bytes. REQUIRES: the edge is constant.
  std::optional<Digest> Name(Edge edge);

 private:
  const Graph& graph_;
  const WeightSource& weights_;
  Digest NameOf(Edge edge);

  std::map<Edge, Tensor> known_;
  std::map<Edge, Digest> names_;
};

}  // namespace ag
