#include "graph/weights.h"

#include <cmath>
#include <cstring>

#include "base/random.h"

namespace ag {
namespace {

Status CheckBytes(const Digest& digest, const TensorType& type, std::string_view bytes) {
  if (BytesFit(type, bytes)) return OkStatus();
  return Err(StatusCode::kDataLoss, "constant {}: {} needs {} bytes, got {}", digest.Short(),
             type.ToString(), type.Bytes(), bytes.size());
}

template <class Draw>
Tensor Fill(const TensorType& type, Draw draw) {
  std::vector<double> values(static_cast<size_t>(type.NumElements()));
  for (double& value : values) value = draw();
  return Tensor::FromDoubles(type, values);
}

// Returns strings that can be cast to numbers.
Tensor RandomNumerals(const TensorType& type, Random& random) {
  std::vector<std::string> numerals(static_cast<size_t>(type.NumElements()));
  for (std::string& numeral : numerals) numeral = fmt::format("{}", random.Below(100));
  return Tensor::FromStrings(type.shape, numerals);
}

}  // namespace

Digest MemoryWeights::Put(const Tensor& tensor) {
  const Digest digest = tensor.Name();
  MutexLock lock(mutex_);
  tensors_.emplace(digest, tensor);
  return digest;
}

StatusOr<Tensor> MemoryWeights::Get(const Digest& digest, const TensorType& type) const {
  MutexLock lock(mutex_);
  const auto found = tensors_.find(digest);
  if (found == tensors_.end()) {
    return Err(StatusCode::kNotFound, "constant {} is not in memory", digest.Short());
  }
  const Tensor& tensor = found->second;
  AG_TRY(CheckBytes(digest, type, tensor.bytes()));
  return tensor.Retyped(type);
}

StatusOr<Tensor> ConstantOf(const WeightSource& weights, const Digest& digest,
                            const TensorType& type) {
  if (type.NumElements() == 0) return Tensor::Zeros(type);
  AG_LET(Tensor tensor, weights.Get(digest, type));
  if (tensor.type() == type) return tensor;
  return Err(StatusCode::kInternal, "constant {}: asked for {}, got {}", digest.Short(),
             type.ToString(), tensor.type().ToString());
}

StatusOr<Tensor> BlobWeights::Get(const Digest& digest, const TensorType& type) const {
  AG_LET(const std::shared_ptr<const MappedFile> file, blobs_->Get(digest));
  AG_TRY(CheckBytes(digest, type, file->bytes()));
  return Tensor::View(type, file->bytes(), file);
}

Tensor SyntheticTensor(const TensorType& type, uint64_t seed) {
  Random random(seed);
  if (!IsFloat(type.dtype)) return Fill(type, [&] { return static_cast<double>(random.Below(2)); });
  constexpr double kLeast = 1e-4;  // Above the smallest normal half, 6.1e-5.
  return Fill(type, [&] {
    double value = 0;
    while (std::fabs(value) < kLeast) value = 0.1 * random.Normal();
    return value;
  });
}

StatusOr<Tensor> SyntheticWeights::Get(const Digest& digest, const TensorType& type) const {
  uint64_t seed = 0;
  std::memcpy(&seed, digest.bytes.data(), sizeof(seed));
  return SyntheticTensor(type, seed);
}

Tensor RandomTensor(const TensorType& type, uint64_t seed, int64_t int_below) {
  Random random(seed);
  if (type.dtype == DType::kString) return RandomNumerals(type, random);
  if (IsFloat(type.dtype)) return Fill(type, [&] { return random.Normal(); });
  const int64_t below = type.dtype == DType::kBool ? 2 : int_below;
  return Fill(type,
              [&] { return static_cast<double>(random.Below(static_cast<uint64_t>(below))); });
}

}  // namespace ag
