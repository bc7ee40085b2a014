#include "device/cuda/launch/group_kernel.h"

namespace ag::cuda {

StatusOr<const std::byte*> WeightMemory::Put(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const Digest digest = Sha256(text);
  if (const auto found = known_.find(digest); found != known_.end()) return found->second.get();
  AG_LET(std::byte* const memory, driver_.Allocate(static_cast<int64_t>(bytes.size())));
  OwnedMemory owned(driver_, memory);
  AG_TRY(driver_.Upload(memory, bytes, stream_), "weights of {} bytes", bytes.size());
  held_bytes_ += static_cast<int64_t>(bytes.size());
  known_[digest] = std::move(owned);
  return memory;
}

}  // namespace ag::cuda
