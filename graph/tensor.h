// A dense row-major tensor of known type over shared bytes. Copies share the bytes; shared bytes
// are never written. Safe to share between threads, except Mutable and Put.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "graph/types.h"

namespace ag {

class Tensor {
 public:
  Tensor() = default;
  // Returns a tensor of zeros, aligned to 64 bytes.
  static Tensor Zeros(TensorType type);
  // Returns a view of bytes that `owner` keeps alive. REQUIRES: bytes.size() == type.Bytes().
  static Tensor View(TensorType type, std::string_view bytes, std::shared_ptr<const void> owner);
  // Returns a tensor with a copy of `bytes`. REQUIRES: bytes.size() == type.Bytes().
  static Tensor FromBytes(TensorType type, std::string_view bytes);
  // Returns a tensor of the values. Float dtypes round; integer dtypes truncate and saturate, and
  // NaN gives 0. REQUIRES: one value per element, a numeric dtype.
  static Tensor FromDoubles(TensorType type, std::span<const double> values);
  static Tensor FromFloats(Shape shape, std::span<const float> values);
  static Tensor FromInts(Shape shape, std::span<const int64_t> values);

  const TensorType& type() const { return type_; }
  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }
  Digest Name() const { return Sha256(bytes()); }

  // REQUIRES: T's size is the element size.
  template <class T>
  std::span<const T> As() const {
    return {static_cast<const T*>(data_), size_ / sizeof(T)};
  }
  // REQUIRES: made by Zeros/From* or a View of writable bytes, and not shared yet.
  template <class T>
  std::span<T> Mutable() {
    return {static_cast<T*>(const_cast<void*>(data_)), size_ / sizeof(T)};
  }
  // Returns element i of any dtype as a double. REQUIRES: a numeric dtype.
  double At(int64_t i) const;
  std::vector<double> ToDoubles() const;  // All elements, as from At.
  // Sets element i; converts as FromDoubles. REQUIRES: as for Mutable.
  void Put(int64_t i, double value);

 private:
  TensorType type_;
  std::shared_ptr<const void> owner_;
  const void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace ag
