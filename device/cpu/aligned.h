// Memory for tensors: one 64-byte aligned, zero-filled block.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/status.h"

namespace ag::cpu {

inline constexpr size_t kAlignment = 64;
inline size_t AlignUp(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // kResourceExhausted, with the bytes asked for, when there is no memory.
  static StatusOr<AlignedBuffer> Make(size_t bytes) {
    AlignedBuffer buffer;
    buffer.size_ = AlignUp(bytes == 0 ? 1 : bytes);
    buffer.data_.reset(std::aligned_alloc(kAlignment, buffer.size_));
    if (buffer.data_ == nullptr) {
      return Err(StatusCode::kResourceExhausted, "cpu memory: cannot allocate {} bytes", bytes);
    }
    std::memset(buffer.data_.get(), 0, buffer.size_);
    return buffer;
  }

  std::byte* data() const { return static_cast<std::byte*>(data_.get()); }
  template <class T>
  T* As() const {
    return static_cast<T*>(data_.get());
  }
  size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  std::unique_ptr<void, Free> data_;
  size_t size_ = 0;
};

}  // namespace ag::cpu
