// The eviction of the GPU's second-level cache before a timed run. One thread at a time.
#pragma once

#include "device/cuda/launch/driver.h"

namespace ag::cuda {

// A fill of a buffer twice the size of the cache, shared by all executables of a device. REQUIRES:
// the driver outlives it.
class CacheEviction {
 public:
  CacheEviction(Driver& driver, int64_t cache_bytes);

  // Allocates the buffer on the first call. kResourceExhausted: no memory.
  Status Prepare();

  // Sends the fill to `stream`; while that is captured, the fill becomes a node. REQUIRES: Prepare
  // returned OK.
  Status Enqueue(StreamRef stream);

  int64_t bytes() const { return bytes_; }

 private:
  Driver& driver_;
  const int64_t bytes_;
  OwnedMemory memory_;
};

}  // namespace ag::cuda
