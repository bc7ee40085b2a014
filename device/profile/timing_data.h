// Data that groups are timed on: as SyntheticWeights gives, but made at the speed of memory.
#pragma once

#include <map>

#include "base/mutex.h"
#include "graph/graph.h"
#include "graph/weights.h"

namespace ag {

// Large f32 tensors repeat one seeded stretch of normal numbers from an offset of their own:
// drawing every number would take longer than timing the group. Others are SyntheticTensors. What
// was made is kept, so that all kernels of a group share it. Thread-safe.
class TimingData : public WeightSource {
 public:
  explicit TimingData(uint64_t seed);
  StatusOr<Tensor> Get(const Digest& digest, const TensorType& type) const override;
  // Data for an input; f32 with standard deviation 0.1.
  Tensor Input(const TensorType& type, uint64_t seed) const;
  // One tensor per graph input, and zeros for the outputs to be written to.
  void FillBuffers(const Graph& graph, std::vector<Tensor>* inputs,
                   std::vector<Tensor>* outputs) const;

 private:
  const uint64_t seed_;
  const Tensor stretch_;
  mutable Mutex mutex_;
  mutable std::map<std::pair<Digest, int64_t>, Tensor> made_ AG_GUARDED_BY(mutex_);
};

}  // namespace ag
