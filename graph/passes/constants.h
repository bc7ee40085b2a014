// The constants of a graph during one build of a plan. A value computed from a recipe is shared
// while someone holds it, and kept where it is small: large ones are packed once and then needed no
// more.
// Thread-safe where Get of the weights is.
#pragma once

#include <map>
#include <memory>
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
  std::optional<Tensor> Known(Edge edge) const AG_REQUIRES(mutex_);
  Digest NameOf(Edge edge) AG_REQUIRES(mutex_);

  const Graph& graph_;
  const WeightSource& weights_;
  Mutex mutex_;
  std::map<Edge, Tensor> kept_ AG_GUARDED_BY(mutex_);
  std::map<Edge, std::weak_ptr<const Tensor>> shared_ AG_GUARDED_BY(mutex_);
  std::map<Edge, Digest> names_ AG_GUARDED_BY(mutex_);
};

}  // namespace ag
