#include "device/cpu/cache_eviction.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cstring>

#include "base/file.h"
#include "base/thread.h"

namespace ag::cpu {
namespace {

// A copy of the kernel's description of caches, in a folder of the test.
class Machine {
 public:
  void AddCache(int cpu, int index, const std::vector<std::string>& values) {
    const std::string folder = fmt::format("{}/cpu{}/cache/index{}", root(), cpu, index);
    AG_CHECK(MakeDirs(folder).ok());
    const char* names[] = {"level", "type", "size", "shared_cpu_list"};
    for (size_t i = 0; i < values.size(); ++i) {
      AG_CHECK(WriteFileAtomically(fmt::format("{}/{}", folder, names[i]), values[i] + "\n").ok());
    }
  }
  std::string root() const { return folder_.path(); }

 private:
  TempDir folder_ = *TempDir::Make("cache-eviction");
};

std::vector<int> UsableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  AG_CHECK(sched_getaffinity(0, sizeof(set), &set) == 0);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

TEST(LastLevelCacheBytes, CountsEachCacheOnce) {
  constexpr int64_t kKiB = 1024;
  const int count = static_cast<int>(UsableCpus().size());
  const struct {
    const char* name;
    std::vector<std::vector<std::string>> caches;  // Of each CPU; "own" stands for its number.
    int64_t bytes;
  } kCases[] = {
      {"one for all",
       {{"1", "Data", "48K", "own"},
        {"2", "Unified", "1024K", "own"},
        {"3", "Unified", "32768K", "all"}},
       32768 * kKiB},
      {"one each",
       {{"1", "Data", "48K", "own"}, {"2", "Unified", "512K", "own"}},
       count * 512 * kKiB},
      {"instructions do not count",
       {{"1", "Data", "48K", "all"}, {"2", "Instruction", "64K", "all"}},
       48 * kKiB},
      {"nothing is said", {}, 32768 * kKiB},
      {"no size that we know", {{"3", "Unified", "32M", "all"}}, 32768 * kKiB},
      {"sizes that are none", {{"3", "Unified", "-5K", "all"}}, 32768 * kKiB},
  };
  for (const auto& c : kCases) {
    Machine machine;
    for (const int cpu : UsableCpus()) {
      for (size_t i = 0; i < c.caches.size(); ++i) {
        std::vector<std::string> values = c.caches[i];
        if (values[3] == "own") values[3] = fmt::format("{}", cpu);
        machine.AddCache(cpu, static_cast<int>(i), values);
      }
    }
    EXPECT_EQ(LastLevelCacheBytes(machine.root()), c.bytes) << c.name;
  }
  EXPECT_GT(LastLevelCacheBytes(), 0);
}

TEST(CacheEviction, IsTwiceTheCaches) {
  CacheEviction eviction(UsableCores(), int64_t{3} << 20);
  EXPECT_EQ(eviction.bytes(), int64_t{6} << 20);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(ToString(eviction.Run()), "OK");
  }
}

// No way changes what it cools, or faults where memory was freed since.
TEST(CacheEviction, CoolsWeightsThatMayHaveBeenFreed) {
  constexpr size_t kBytes = size_t{8} << 20;  // A region of its own.
  const AlignedBuffer kept = *AlignedBuffer::Make(kBytes);
  std::memset(kept.data(), 7, kBytes);
  std::vector<WeakBuffer> weights = {WeakBuffer(kept)};
  weights.emplace_back(*AlignedBuffer::Make(kBytes));
  EXPECT_EQ(weights[0].Lock().data(), kept.data());
  EXPECT_EQ(weights[1].Lock().data(), nullptr);
  for (const bool demotes : {false, CanDemoteLines()}) {
    CacheEviction eviction(UsableCores(), int64_t{3} << 20, demotes);
    for (const int64_t constants :
         {int64_t{0}, CacheEviction::kNearBytes, CacheEviction::kFarBytes}) {
      EXPECT_EQ(ToString(eviction.Cool(weights, constants)), "OK");
    }
    EXPECT_EQ(ToString(eviction.Cool({}, CacheEviction::kFarBytes)), "OK");
    eviction.Demote({kept.data(), kBytes});
    eviction.Load({kept.data(), kBytes});
    eviction.Load({});
    EXPECT_TRUE(std::all_of(kept.data(), kept.data() + kBytes,
                            [](std::byte b) { return b == std::byte{7}; }));
  }
}

}  // namespace
}  // namespace ag::cpu
