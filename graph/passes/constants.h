// The constants of a graph during one build of a plan. Values computed from a recipe are kept, so
// each recipe is computed once, or once by each thread that asks for it at the same time.
// Thread-safe where Get of the weights is.
#pragma once

#include <map>
#include <optional>

#include "base/mutex.h"
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
  Digest NameOf(Edge edge) AG_REQUIRES(mutex_);

  const Graph& graph_;
  const WeightSource& weights_;
  Mutex mutex_;
  std::map<Edge, Tensor> known_ AG_GUARDED_BY(mutex_);
  std::map<Edge, Digest> names_ AG_GUARDED_BY(mutex_);
};

}  // namespace ag
