// The eviction of the CPU's caches, which removes everything that a run reads. One thread at a
// time.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "device/cpu/aligned.h"

namespace ag::cpu {

// Returns the bytes of all last-level caches that serve the CPUs this process may run on, each
// cache counted once, as the kernel describes them below `root`; 32 MiB where nothing is described.
// Does not use sysconf: in a virtual machine that gives the whole socket's cache, of which the
// machine has a part.
int64_t LastLevelCacheBytes(const std::string& root = "/sys/devices/system/cpu");

// Whether the processor has CLDEMOTE, which moves a line from a core's own caches to the shared
// one.
bool CanDemoteLines();

using Memory = std::span<const std::byte>;

// Memory of twice `cache_bytes`, taken at first use.
class CacheEviction {
 public:
  CacheEviction(int cores, int64_t cache_bytes, bool demotes = CanDemoteLines())
      : cores_(cores), bytes_(2 * cache_bytes), demotes_(demotes) {}

  // Writes and then reads the memory on the threads that run kernels, an equal part each, so that
  // their own caches are evicted, too. Leaves the caches clean, so that no run pays for writing
  // them back. kResourceExhausted: no memory.
  Status Run();

  // Leaves the caches about as the rest of a plan does before a group runs: the cores' own ones
  // hold nothing of `weights`, memory that may have been freed since, and the rest stays. Where
  // lines cannot be demoted one by one each core writes other memory of the size of its own caches,
  // which takes the rest with it, so that is done for weights of kColdBytes at least, by the
  // `constant_bytes` that they are made of. kResourceExhausted: no memory.
  Status Cool(const std::vector<Memory>& weights, int64_t constant_bytes);
  static constexpr int64_t kColdBytes = int64_t{128} << 10;

  int64_t bytes() const { return bytes_; }

 private:
  const int cores_;
  const int64_t bytes_;
  const bool demotes_;
  AlignedBuffer memory_, cooling_;
};

}  // namespace ag::cpu
