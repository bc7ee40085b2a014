// Sources of the bytes of constants. Graphs name constants by digest; a WeightSource turns a digest
// into a tensor. Thread-safe.
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
  // Returns the constant, of `type`: equal bytes have one digest, whatever their shape. kNotFound:
  // no such constant. kDataLoss: the blob's size does not fit `type`.
  virtual StatusOr<Tensor> Get(const Digest& digest, const TensorType& type) const = 0;
  // Whether each digest is the SHA-256 of its bytes. Then a result computed from them is valid
  // wherever the same digest occurs.
  virtual bool names_content() const { return false; }
  // Gives back memory of constants that comes again when they are read. For builders that have
  // copied what they read so far.
  virtual void DropPages() const {}
};

// Returns the constant; one without elements is in no source. kInternal: a source that returns
// another type than it was asked for, which would be read beyond its end.
StatusOr<Tensor> ConstantOf(const WeightSource& weights, const Digest& digest,
                            const TensorType& type);

// Holds tensors in memory.
class MemoryWeights : public WeightSource {
 public:
  Digest Put(const Tensor& tensor);
  StatusOr<Tensor> Get(const Digest& digest, const TensorType& type) const override;
  bool names_content() const override { return true; }

 private:
  mutable Mutex mutex_;
  std::map<Digest, Tensor> tensors_ AG_GUARDED_BY(mutex_);
};

// Maps blobs of a BlobDir, read-only.
class BlobWeights : public WeightSource {
 public:
  explicit BlobWeights(std::shared_ptr<BlobDir> blobs) : blobs_(std::move(blobs)) {}
  StatusOr<Tensor> Get(const Digest& digest, const TensorType& type) const override;
  bool names_content() const override { return true; }

 private:
  std::shared_ptr<BlobDir> blobs_;
};

// Returns synthetic data: floats are normal with standard deviation 0.1 (never zero, never
// denormal), integers are 0 or 1.
Tensor SyntheticTensor(const TensorType& type, uint64_t seed);

// Makes data for any digest: a SyntheticTensor seeded by the digest. Group measurements run on it
// (docs/design.md, Devices).
class SyntheticWeights : public WeightSource {
 public:
  StatusOr<Tensor> Get(const Digest& digest, const TensorType& type) const override;
};

// Returns random data for inputs of measurements and checks: floats standard normal, integers
// uniform in [0, int_below), booleans fair, strings the numerals "0" to "99".
Tensor RandomTensor(const TensorType& type, uint64_t seed, int64_t int_below = 2);

}  // namespace ag
