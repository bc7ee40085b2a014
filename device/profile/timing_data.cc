#include "device/profile/timing_data.h"

#include <algorithm>
#include <cstring>

#include "device/api/device.h"

namespace ag {
namespace {

constexpr int64_t kStretch = int64_t{1} << 16;

constexpr uint64_t kSeed = 1;

Tensor DataOf(const TensorType& type, uint64_t seed) {
  // One stretch for all groups of a process.
  static const Tensor& stretch = *new Tensor(SyntheticTensor({DType::kFloat32, {kStretch}}, kSeed));
  if (type.dtype != DType::kFloat32 || type.NumElements() <= kStretch) {
    return SyntheticTensor(type, seed);
  }
  Tensor tensor = Tensor::Zeros(type);
  const auto to = tensor.Mutable<float>();
  const auto from = stretch.As<float>();
  size_t at = seed % kStretch;
  for (size_t i = 0; i < to.size();) {
    const size_t count = std::min(from.size() - at, to.size() - i);
    std::memcpy(to.data() + i, from.data() + at, count * sizeof(float));
    i += count;
    at = 0;
  }
  return tensor;
}

}  // namespace

void TimingData::FillBuffers(const Graph& graph, std::vector<Tensor>* inputs,
                             std::vector<Tensor>* outputs) const {
  for (const NodeId id : graph.inputs()) {
    inputs->push_back(DataOf(graph.type({id, 0}), kSeed + inputs->size()));
  }
  *outputs = EmptyOutputs(graph);
}

StatusOr<Tensor> TimingData::Get(const Digest& digest, const TensorType& type) const {
  const MutexLock lock(mutex_);
  const auto [it, is_new] = made_.try_emplace({digest, type.dtype, type.Bytes()});
  if (is_new) {
    uint64_t seed = 0;
    std::memcpy(&seed, digest.bytes.data(), sizeof(seed));
    it->second = DataOf(type, seed);
  }
  // Equal bytes have one name, whatever their shape.
  return it->second.Retyped(type);
}

}  // namespace ag
