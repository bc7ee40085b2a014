// Memory for tensors: 64-byte aligned, zero-filled, and in huge pages where the system grants them.
// Make is thread-safe; a buffer is a shared handle.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

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
  friend class WeakBuffer;
  std::shared_ptr<std::byte> data_;  // Shares the ownership of its region.
  size_t size_ = 0;
};

// A buffer that it does not keep alive.
class WeakBuffer {
 public:
  explicit WeakBuffer(const AlignedBuffer& buffer) : data_(buffer.data_), size_(buffer.size_) {}
  // Returns a handle to its memory, which may have been given to another buffer since; an empty one
  // when the memory is gone.
  AlignedBuffer Lock() const {
    AlignedBuffer buffer;
    buffer.data_ = data_.lock();
    buffer.size_ = buffer.data_ == nullptr ? 0 : size_;
    return buffer;
  }

 private:
  std::weak_ptr<std::byte> data_;
  size_t size_ = 0;
};

// Lists the buffers that this thread makes, or takes from others by Note, while it lives: what a
// kernel that is made meanwhile holds, its packed weights above all.
class BufferList {
 public:
  BufferList() : outer_(innermost_) { innermost_ = this; }
  ~BufferList() { innermost_ = outer_; }
  BufferList(const BufferList&) = delete;
  BufferList& operator=(const BufferList&) = delete;

  static void Note(const AlignedBuffer& buffer) {
    if (innermost_ != nullptr) innermost_->buffers_.emplace_back(buffer);
  }
  std::vector<WeakBuffer> Take() { return std::move(buffers_); }

 private:
  static thread_local BufferList* innermost_;
  BufferList* const outer_;
  std::vector<WeakBuffer> buffers_;
};

}  // namespace ag::cpu
