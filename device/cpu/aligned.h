// Memory for tensors: 64-byte aligned, zero-filled, and in huge pages where the system grants them.
// Make is thread-safe; a buffer is a shared handle.
#pragma once

#include <cstddef>
#include <memory>

#include "base/status.h"

namespace ag::cpu {

inline constexpr size_t kAlignment = 64;
inline size_t AlignUp(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// A piece of memory, cut from a shared region of whole huge pages. A model's weights are hundreds
// of pieces that each run reads once: on 4 KiB pages every run walks the page table for all of them
// (Inception-v3 took a third longer). A region lives as long as one of its pieces.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // Returns a new buffer. kResourceExhausted: no memory; the message has the bytes asked for.
  static StatusOr<AlignedBuffer> Make(size_t bytes);

  std::byte* data() const { return data_.get(); }
  template <class T>
  T* As() const {
    return reinterpret_cast<T*>(data_.get());
  }
  size_t size() const { return size_; }

 private:
  std::shared_ptr<std::byte> data_;  // Shares the ownership of its region.
  size_t size_ = 0;
};

}  // namespace ag::cpu
