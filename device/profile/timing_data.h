// Data to time groups on: like SyntheticWeights, but made at the speed of memory. Thread-safe.
#pragma once

#include <map>

#include "base/mutex.h"
#include "graph/graph.h"
#include "graph/weights.h"

namespace ag {

// Large f32 tensors repeat one seeded stretch of normal numbers, each from its own offset, because
// drawing every number would take longer than timing the group. Other tensors are SyntheticTensors.
// Tensors are kept, so that all kernels of a group share them.
class TimingData : public WeightSource {
 public:
  explicit TimingData(uint64_t seed);
  StatusOr<Tensor> Get(const Digest& digest, const TensorType& type) const override;
  // Returns data for an input; f32 with standard deviation 0.1.
  Tensor Input(const TensorType& type, uint64_t seed) const;
  // Makes one tensor per graph input, and zeros for the outputs.
  void FillBuffers(const Graph& graph, std::vector<Tensor>* inputs,
                   std::vector<Tensor>* outputs) const;

 private:
  const uint64_t seed_;
  const Tensor stretch_;
  mutable Mutex mutex_;
  mutable std::map<std::pair<Digest, int64_t>, Tensor> made_ AG_GUARDED_BY(mutex_);
};

}  // namespace ag
