// Rows of a matrix in memory, of f32 or bf16, that a kernel computes as f32: those of bf16 go
// through scratch memory of the worker, which holds one row and stays in its nearest cache.
#pragma once

#include "device/cpu/aligned.h"
#include "device/cpu/half_loops.h"

namespace ag::cpu {

class FloatRows {
 public:
  FloatRows() = default;
  // REQUIRES: `dtype` is f32 or bf16.
  FloatRows(DType dtype, int64_t size, int cores)
      : is_bf16_(dtype == DType::kBFloat16), size_(size), cores_(cores) {}

  size_t scratch_bytes() const { return is_bf16_ ? static_cast<size_t>(cores_) * RowBytes() : 0; }

  // Returns a row as floats. What it returned before for the worker is overwritten.
  const float* Read(const void* rows, int64_t row, std::byte* scratch, int worker) const {
    if (!is_bf16_) return static_cast<const float*>(rows) + row * size_;
    float* own = Own(scratch, worker);
    WidenHalf(DType::kBFloat16, static_cast<const uint16_t*>(rows) + row * size_, own, size_);
    return own;
  }

  // Calls write(to), which writes a row of floats; `to` may be what Read returned.
  template <class F>
  void Write(void* rows, int64_t row, std::byte* scratch, int worker, const F& write) const {
    if (!is_bf16_) return write(static_cast<float*>(rows) + row * size_);
    float* own = Own(scratch, worker);
    write(own);
    StoreAsBf16(own, static_cast<uint16_t*>(rows) + row * size_, size_);
  }

 private:
  size_t RowBytes() const { return AlignUp(static_cast<size_t>(size_) * sizeof(float)); }
  float* Own(std::byte* scratch, int worker) const {
    return reinterpret_cast<float*>(scratch + static_cast<size_t>(worker) * RowBytes());
  }

  bool is_bf16_ = false;
  int64_t size_ = 0;
  int cores_ = 1;
};

}  // namespace ag::cpu
