// The constants of a graph during one build of a plan. Values computed from a recipe are kept, so
// each recipe is computed once. One thread at a time.
#pragma once

#include <map>
#include <optional>

#include "graph/graph.h"
#include "graph/weights.h"

namespace ag {

class Constants {
 public:
  // Keeps references to both, which must outlive this.
  Constants(const Graph& graph, const WeightSource& weights) : graph_(graph), weights_(weights) {}

  // Returns the value of the edge. kInvalidArgument: the edge is not constant. Other codes as
  // Materialize.
  StatusOr<Tensor> Get(Edge edge);

  // Returns a name for the value: equal for equal recipes over equal bytes, in any graph. Nothing
  // when the source's digests do not name bytes. REQUIRES: the edge is constant.
  std::optional<Digest> Name(Edge edge);

 private:
  const Graph& graph_;
  const WeightSource& weights_;
  Digest NameOf(Edge edge);

  std::map<Edge, Tensor> known_;
  std::map<Edge, Digest> names_;
};

}  // namespace ag
