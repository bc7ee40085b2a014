#include "device/cpu/aligned.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/mutex.h"

namespace ag::cpu {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kRegion = 8 * kHugePage;  // Pieces of at least half of it have their own region.

class Unmap {
 public:
  explicit Unmap(size_t bytes) : bytes_(bytes) {}
  void operator()(std::byte* begin) const { munmap(begin, bytes_); }

 private:
  size_t bytes_;
};

// Returns `bytes` of zeros that begin and end at huge pages; null when there is no memory.
std::shared_ptr<std::byte> MapRegion(size_t bytes) {
  const size_t asked = bytes + kHugePage;
  void* mapped = mmap(nullptr, asked, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(mapped);
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(begin) % kHugePage) % kHugePage;
  if (before > 0) munmap(begin, before);
  if (before < kHugePage) munmap(begin + before + bytes, kHugePage - before);
  madvise(begin + before, bytes, MADV_HUGEPAGE);  // Small pages work as well.
  return {begin + before, Unmap(bytes)};
}

// Cuts pieces from one region after the other. Invariant: the pieces in a region do not overlap,
// and a region is reused, zero-filled, only when no piece of it is held. Only the last region is
// kept for that, because measuring makes and drops small kernels by the thousand.
class Pool {
 public:
  std::shared_ptr<std::byte> Cut(size_t bytes) {
    const MutexLock lock(mutex_);
    if (region_.use_count() == 1) {
      // The use count is read relaxed; the fence orders the last holder's writes before these
      // zeros.
      std::atomic_thread_fence(std::memory_order_acquire);
      std::memset(region_.get(), 0, used_);
      used_ = 0;
    }
    if (region_ == nullptr || used_ + bytes > kRegion) {
      std::shared_ptr<std::byte> fresh = MapRegion(kRegion);
      if (fresh == nullptr) return nullptr;
      region_ = std::move(fresh);
      used_ = 0;
    }
    std::shared_ptr<std::byte> piece(region_, region_.get() + used_);
    used_ += bytes;
    return piece;
  }

 private:
  Mutex mutex_;
  std::shared_ptr<std::byte> region_ AG_GUARDED_BY(mutex_);
  size_t used_ AG_GUARDED_BY(mutex_) = 0;
};

std::shared_ptr<std::byte> Cut(size_t bytes) {
  if (bytes >= kRegion / 2) return MapRegion((bytes + kHugePage - 1) / kHugePage * kHugePage);
  static Pool& pool = *new Pool();  // Never destroyed: buffers may outlive statics.
  return pool.Cut(bytes);
}

}  // namespace

thread_local BufferList* BufferList::innermost_ = nullptr;

StatusOr<AlignedBuffer> AlignedBuffer::Make(size_t bytes) {
  AlignedBuffer buffer;
  buffer.size_ = AlignUp(bytes == 0 ? 1 : bytes);
#if defined(__SANITIZE_ADDRESS__)
  // One block for each buffer, so that the sanitizer sees accesses beyond its end.
  buffer.data_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, buffer.size_)),
                     std::free);
  if (buffer.data_ != nullptr) std::memset(buffer.data_.get(), 0, buffer.size_);
#else
  buffer.data_ = Cut(buffer.size_);
#endif
  if (buffer.data_ == nullptr) {
    return Err(StatusCode::kResourceExhausted, "cpu memory: cannot allocate {} bytes", bytes);
  }
  BufferList::Note(buffer);
  return buffer;
}

}  // namespace ag::cpu
