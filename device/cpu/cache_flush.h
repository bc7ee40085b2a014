// Emptying the CPU's caches of everything that a run will want.
#pragma once

#include <string>

#include "device/cpu/aligned.h"

namespace ag::cpu {

// Bytes of all last-level caches that serve the CPUs this process may run on, each cache counted
// once, as the kernel describes them below `root`. sysconf's figure is not used: in a virtual
// machine it is the socket's, of which the machine has a part. 32 MiB where nothing is described.
int64_t LastLevelCacheBytes(const std::string& root = "/sys/devices/system/cpu");

// Memory of twice `cache_bytes`, taken when it is first wanted. Used by one thread at a time.
class CacheFlush {
 public:
  CacheFlush(int cores, int64_t cache_bytes) : cores_(cores), bytes_(2 * cache_bytes) {}

  // Writes and reads the memory on the threads that run kernels, an equal part each: so their own
  // caches hold nothing else either. What is left in the caches is clean: no run pays for writing
  // it back. kResourceExhausted: there is no such memory.
  Status Run();

  int64_t bytes() const { return bytes_; }

 private:
  const int cores_;
  const int64_t bytes_;
  AlignedBuffer memory_;
};

}  // namespace ag::cpu
