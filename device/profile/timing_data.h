// Data to time groups on: like SyntheticWeights, but made at the speed of memory. Thread-safe.
#pragma once

#include <map>
#include <tuple>

#include "base/mutex.h"
#include "graph/graph.h"
#include "graph/weights.h"

namespace ag {

// Large f32 tensors repeat one seeded stretch of normal numbers, each from its own offset, because
// drawing every number would take longer than timing the group. Other tensors are SyntheticTensors.
// Tensors are kept, so that all kernels of a group share them.
class TimingData : public WeightSource {
 public:
  StatusOr<Tensor> Get(const Digest& digest, const TensorType& type) const override;
  // Makes one tensor per graph input (f32 has standard deviation 0.1), and zeros for the outputs.
  void FillBuffers(const Graph& graph, std::vector<Tensor>* inputs,
                   std::vector<Tensor>* outputs) const;

 private:
  mutable Mutex mutex_;
  using Key = std::tuple<Digest, DType, int64_t>;  // The last is the size in bytes.
  mutable std::map<Key, Tensor> made_ AG_GUARDED_BY(mutex_);
};

}  // namespace ag
