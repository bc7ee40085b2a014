#include "device/cuda/launch/group_kernel.h"

namespace ag::cuda {

StatusOr<const std::byte*> WeightMemory::Put(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  OwnedMemory& known = known_[Sha256(text)];
  if (known.get() == nullptr) {
    AG_LET(std::byte* const memory, driver_.Allocate(static_cast<int64_t>(bytes.size())));
    known = OwnedMemory(driver_, memory);
    AG_TRY(driver_.Upload(memory, bytes, stream_), "weights of {} bytes", bytes.size());
    held_bytes_ += static_cast<int64_t>(bytes.size());
  }
  return known.get();
}

}  // namespace ag::cuda
