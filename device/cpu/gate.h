// A gate between the streams of one run: a number that one thread sets and others wait for.
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

namespace ag::cpu {

// Waits spin this often before they sleep, because a group takes tens of microseconds and a sleep
// costs as much.
inline constexpr int kSpins = 4000;

class Gate {
 public:
  // Invariant: no wake-up is lost. libstdc++ 12 asks whether somebody sleeps with a load, which may
  // come before the store unless both are sequentially consistent: the sleeper was then not seen.
  void Open(uint32_t epoch) {
    value_.store(epoch);
    value_.notify_all();
  }

  // Returns once Open(epoch) was called. `spins`: how often it looks before it sleeps.
  void Wait(uint32_t epoch, int spins = kSpins) const {
    uint32_t seen = value_.load(std::memory_order_acquire);
    for (int i = 0; i < spins && seen != epoch; ++i) {
      Pause();
      seen = value_.load(std::memory_order_acquire);
    }
    while (seen != epoch) {
      value_.wait(seen, std::memory_order_acquire);
      seen = value_.load(std::memory_order_acquire);
    }
  }

 private:
  static void Pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  std::atomic<uint32_t> value_{0};
};

}  // namespace ag::cpu
