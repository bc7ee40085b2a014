// What the CPU's caches hold before a timed run: nothing that it reads, or what a plan leaves. One
// thread at a time.
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

  // Leaves in the cores' own caches nothing of the weights that a kernel made of `constant_bytes`
  // of constants, as the rest of a plan does before a group runs. Where these are kFarBytes or more
  // they are in no cache then: a model with such weights has more than the shared cache keeps.
  // Smaller ones stay in the shared cache where CanDemoteLines(); elsewhere each core writes other
  // memory of the size of its own caches, which takes all else with it, so that is done for
  // kNearBytes or more. kResourceExhausted: no memory.
  Status Cool(const std::vector<WeakBuffer>& weights, int64_t constant_bytes);
  static constexpr int64_t kNearBytes = int64_t{128} << 10, kFarBytes = int64_t{1} << 20;

  // Moves the memory out of the cores' own caches, where CanDemoteLines().
  void Demote(Memory memory);

  // Brings an equal part of the memory into each core's own caches.
  void Load(Memory memory);

  int64_t bytes() const { return bytes_; }

 private:
  const int cores_;
  const int64_t bytes_;
  const bool demotes_;
  AlignedBuffer memory_, cooling_;
};

}  // namespace ag::cpu
