#include "device/cuda/launch/cache_eviction.h"

namespace ag::cuda {
namespace {

// The size when a spec does not give one.
constexpr int64_t kBytesUnknown = int64_t{64} << 20;
constexpr uint8_t kValue = 0x5A;

}  // namespace

CacheEviction::CacheEviction(Driver& driver, int64_t cache_bytes)
    : driver_(driver), bytes_(cache_bytes > 0 ? 2 * cache_bytes : kBytesUnknown) {}

Status CacheEviction::Prepare() {
  if (memory_.get() != nullptr) return OkStatus();
  AG_LET(std::byte* const memory, driver_.Allocate(bytes_));
  memory_ = OwnedMemory(driver_, memory);
  return OkStatus();
}

Status CacheEviction::Enqueue(StreamRef stream) {
  return driver_.Fill(memory_.get(), kValue, bytes_, stream);
}

}  // namespace ag::cuda
