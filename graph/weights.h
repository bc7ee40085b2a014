// Where the bytes of constants come from. Graphs name constants by digest only; a WeightSource
// turns the digest into a tensor. All sources are thread-safe.
#pragma once

#include <map>
#include <memory>

#include "base/blobs.h"
#include "base/mutex.h"
#include "graph/tensor.h"

namespace ag {

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  // kNotFound: no such constant. kDataLoss: the blob's size does not fit `type`.
  virtual StatusOr<Tensor> Get(const Digest& digest, const TensorType& type) const = 0;
  // Whether a digest stands for the bytes that it is the SHA-256 of, so that what was made from
  // them serves wherever the same digest comes.
  virtual bool names_content() const { return false; }
};

class MemoryWeights : public WeightSource {
 public:
  Digest Put(const Tensor& tensor);
  StatusOr<Tensor> Get(const Digest& digest, const TensorType& type) const override;
  bool names_content() const override { return true; }

 private:
  mutable Mutex mutex_;
  std::map<Digest, Tensor> tensors_ AG_GUARDED_BY(mutex_);
};

// Maps blobs read-only.
class BlobWeights : public WeightSource {
 public:
  explicit BlobWeights(std::shared_ptr<BlobDir> blobs) : blobs_(std::move(blobs)) {}
  StatusOr<Tensor> Get(const Digest& digest, const TensorType& type) const override;
  bool names_content() const override { return true; }

 private:
  std::shared_ptr<BlobDir> blobs_;
};

// Floats normal with standard deviation 0.1 (never zeros, never denormals), integers 0 or 1.
Tensor SyntheticTensor(const TensorType& type, uint64_t seed);

// Makes data for any digest, a SyntheticTensor seeded by the digest. What group measurements run on
// (DESIGN section 7).
class SyntheticWeights : public WeightSource {
 public:
  StatusOr<Tensor> Get(const Digest& digest, const TensorType& type) const override;
};

// Random data for inputs of measurements and checks: floats standard normal, integers uniform in
// [0, int_below), booleans fair.
Tensor RandomTensor(const TensorType& type, uint64_t seed, int64_t int_below = 2);

}  // namespace ag
