// A dense row-major tensor of known type over shared bytes. Copies share the bytes; shared bytes
// are never written. Safe to share between threads, except Mutable and Put. The bytes of strings
// are n + 1 offsets (i64, from 0) and then the characters: element i lies between offsets i and
// i + 1 of them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
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
  // Returns a view of bytes that `owner` keeps alive. REQUIRES: BytesFit(type, bytes).
  static Tensor View(TensorType type, std::string_view bytes, std::shared_ptr<const void> owner);
  // Returns the same bytes as a tensor of another type, without a copy. REQUIRES: BytesFit(type,
  // bytes()).
  Tensor Retyped(TensorType type) const { return View(std::move(type), bytes(), owner_); }
  // Returns a tensor with a copy of `bytes`. REQUIRES: BytesFit(type, bytes).
  static Tensor FromBytes(TensorType type, std::string_view bytes);
  // Returns a tensor of the values. Float dtypes round; integer dtypes truncate and saturate, and
  // NaN gives 0. REQUIRES: one value per element, a numeric dtype.
  static Tensor FromDoubles(TensorType type, std::span<const double> values);
  static Tensor FromFloats(Shape shape, std::span<const float> values);
  static Tensor FromInts(Shape shape, std::span<const int64_t> values);
  static Tensor FromStrings(Shape shape, std::span<const std::string_view> values);
  static Tensor FromStrings(Shape shape, std::span<const std::string> values);

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
  // Returns all elements, which point into the bytes. REQUIRES: kString.
  std::vector<std::string_view> Strings() const;
  // Sets element i; converts as FromDoubles. REQUIRES: as for Mutable.
  void Put(int64_t i, double value);

 private:
  static Tensor Allocated(TensorType type, size_t size);  // Zeros.

  TensorType type_;
  std::shared_ptr<const void> owner_;
  const void* data_ = nullptr;
  size_t size_ = 0;
};

// Rounds each value to one that an element of `dtype` holds; converts as FromDoubles. REQUIRES: a
// numeric dtype.
void RoundTo(DType dtype, std::span<double> values);

// Whether these are the bytes of a tensor of the type: their number, and of strings the offsets.
bool BytesFit(const TensorType& type, std::string_view bytes);

}  // namespace ag
