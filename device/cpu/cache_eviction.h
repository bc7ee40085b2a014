// The eviction of the CPU's caches, which removes everything that a run reads. One thread at a
// time.
#pragma once

#include <string>

#include "device/cpu/aligned.h"

namespace ag::cpu {

// Returns the bytes of all last-level caches that serve the CPUs this process may run on, each
// cache counted once, as the kernel describes them below `root`; 32 MiB where nothing is described.
// Does not use sysconf: in a virtual machine that gives the whole socket's cache, of which the
// machine has a part.
int64_t LastLevelCacheBytes(const std::string& root = "/sys/devices/system/cpu");

// Memory of twice `cache_bytes`, taken at first use.
class CacheEviction {
 public:
  CacheEviction(int cores, int64_t cache_bytes) : cores_(cores), bytes_(2 * cache_bytes) {}

  // Writes and then reads the memory on the threads that run kernels, an equal part each, so that
  // their own caches are evicted, too. Leaves the caches clean, so that no run pays for writing
  // them back. kResourceExhausted: no memory.
  Status Run();

  // Writes other memory of the size of a core's own caches on each core, as the rest of a plan does
  // before a group runs. kResourceExhausted: no memory.
  Status Cool();

  int64_t bytes() const { return bytes_; }

 private:
  const int cores_;
  const int64_t bytes_;
  AlignedBuffer memory_, cooling_;
};

}  // namespace ag::cpu
