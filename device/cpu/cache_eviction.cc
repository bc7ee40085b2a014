#include "device/cpu/cache_eviction.h"

#include <cpuid.h>
#include <immintrin.h>
#include <sched.h>

#include <cstring>
#include <map>

#include "base/file.h"
#include "base/text.h"
#include "device/cpu/parallel.h"

namespace ag::cpu {
namespace {

constexpr int64_t kDefaultBytes = int64_t{32} << 20;
constexpr int64_t kCacheLine = 64;
// A core's own caches are 2 MiB on current servers, half of that on most.
constexpr int64_t kCoolingBytes = int64_t{3} << 20;
constexpr int kIndicesMax = 10;  // Caches of one CPU; there are four today.

std::string Word(const std::string& path) {
  const StatusOr<std::string> text = ReadFile(path);
  return text.ok() ? std::string(Trim(*text)) : "";
}

// Parses "32768K", the kernel's form; 0 for anything else.
int64_t BytesOf(std::string_view size) {
  if (!size.ends_with('K')) return 0;
  const StatusOr<int64_t> kib = ParseInt(size.substr(0, size.size() - 1));
  return kib.ok() && *kib > 0 && *kib < int64_t{1} << 32 ? *kib << 10 : 0;
}

// The data cache of the highest level; the list of CPUs that share it identifies it.
struct Cache {
  int64_t level = 0, bytes = 0;
  std::string shared_by;
};
Cache LastLevelOf(const std::string& cpu) {
  Cache last;
  for (int i = 0; i < kIndicesMax; ++i) {
    const std::string folder = fmt::format("{}/cache/index{}", cpu, i);
    const StatusOr<int64_t> level = ParseInt(Word(folder + "/level"));
    if (!level.ok()) break;
    if (*level <= last.level || Word(folder + "/type") == "Instruction") continue;
    last = {*level, BytesOf(Word(folder + "/size")), Word(folder + "/shared_cpu_list")};
  }
  return last;
}

// A hint, which does nothing on a processor that lacks it.
__attribute__((target("cldemote"))) void DemoteLines(Memory memory) {
  auto* const begin = const_cast<std::byte*>(memory.data());  // Nothing is written.
  for (size_t i = 0; i < memory.size(); i += kCacheLine) _cldemote(begin + i);
}

void FlushLines(Memory memory) {
  for (size_t i = 0; i < memory.size(); i += kCacheLine) _mm_clflush(memory.data() + i);
}

}  // namespace

int64_t LastLevelCacheBytes(const std::string& root) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (sched_getaffinity(0, sizeof(usable), &usable) != 0) CPU_SET(0, &usable);
  std::map<std::string, int64_t> caches;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &usable)) continue;
    const Cache cache = LastLevelOf(fmt::format("{}/cpu{}", root, cpu));
    if (cache.bytes > 0) caches[cache.shared_by] = cache.bytes;
  }
  int64_t bytes = 0;
  for (const auto& [shared_by, size] : caches) bytes += size;
  return bytes > 0 ? bytes : kDefaultBytes;
}

// Writes one byte per line, which brings the whole line into the caches. (A memset of this size
// would bypass them.) The reads come to each line after as many others as the caches hold.
Status CacheEviction::Run() {
  if (memory_.data() == nullptr) {
    AG_LET(memory_, AlignedBuffer::Make(bytes_));
  }
  const int64_t lines = bytes_ / kCacheLine;
  ParallelFor(cores_, lines, (lines + cores_ - 1) / cores_, [&](int64_t begin, int64_t end, int) {
    auto* const memory = reinterpret_cast<volatile char*>(memory_.data());
    for (int64_t i = begin; i < end; ++i) memory[i * kCacheLine] = static_cast<char>(i);
    for (int64_t i = begin; i < end; ++i) static_cast<void>(memory[i * kCacheLine]);
  });
  return OkStatus();
}

bool CanDemoteLines() {
  constexpr unsigned kLeaf = 7, kBit = 25;  // Of ECX.
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(kLeaf, 0, &a, &b, &c, &d) != 0 && (c >> kBit & 1) != 0;
}

void CacheEviction::Demote(Memory memory) {
  if (!demotes_) return;
  ParallelFor(cores_, cores_, 1, [&](int64_t, int64_t, int) { DemoteLines(memory); });
}

void CacheEviction::Load(Memory memory) {
  const auto lines = static_cast<int64_t>(memory.size()) / kCacheLine;
  ParallelFor(cores_, lines, (lines + cores_ - 1) / cores_, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      static_cast<void>(*static_cast<const volatile std::byte*>(memory.data() + i * kCacheLine));
    }
  });
}

Status CacheEviction::Cool(const std::vector<WeakBuffer>& weights, int64_t constant_bytes) {
  std::vector<AlignedBuffer> held;
  size_t bytes = 0;
  for (const WeakBuffer& buffer : weights) {
    held.push_back(buffer.Lock());
    bytes += held.back().size();
  }
  if (bytes == 0) return OkStatus();
  if (constant_bytes >= kFarBytes) {
    for (const AlignedBuffer& buffer : held) FlushLines({buffer.data(), buffer.size()});
    return OkStatus();
  }
  if (demotes_) {
    ParallelFor(cores_, cores_, 1, [&](int64_t, int64_t, int) {
      for (const AlignedBuffer& buffer : held) DemoteLines({buffer.data(), buffer.size()});
    });
    return OkStatus();
  }
  if (constant_bytes < kNearBytes) return OkStatus();
  if (cooling_.data() == nullptr) {
    AG_LET(cooling_, AlignedBuffer::Make(kCoolingBytes * cores_));
  }
  ParallelFor(cores_, cores_, 1, [&](int64_t first, int64_t last, int) {
    for (int64_t part = first; part < last; ++part) {
      std::memset(cooling_.data() + part * kCoolingBytes, static_cast<int>(part), kCoolingBytes);
    }
  });
  return OkStatus();
}

}  // namespace ag::cpu
