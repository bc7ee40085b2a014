#include "device/cpu/gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/testing/eventually.h"

namespace ag::cpu {
namespace {

// Two threads wait for each other at each of many gates. A wake-up that is lost stops both for
// ever: once in 10,000 to 5,000,000 gates while Open stored without an order. Beside other load
// some seconds of it are enough.
TEST(Gate, NoWakeUpIsLost) {
  constexpr int kGates = 64;
  struct Sides {
    std::vector<Gate> left = std::vector<Gate>(kGates), right = std::vector<Gate>(kGates);
    std::atomic<uint32_t> last{40'000};  // Epoch.
    std::atomic<int> ended{0};
  };
  const auto sides = std::make_shared<Sides>();
  const Nanos until = RealClock().Now() + std::chrono::seconds(4);
  const auto run = [sides, until](std::vector<Gate>& own, std::vector<Gate>& other) {
    for (uint32_t epoch = 1; epoch <= sides->last; ++epoch) {
      // The right side knows of it when it has passed the gates that the left one opens then.
      if (&own == &sides->left && RealClock().Now() >= until) sides->last = epoch;
      for (int i = 0; i < kGates; ++i) {
        own[i].Open(epoch);
        other[i].Wait(epoch, /*spins=*/0);
      }
    }
    ++sides->ended;
  };
  std::thread(run, std::ref(sides->left), std::ref(sides->right)).detach();
  std::thread(run, std::ref(sides->right), std::ref(sides->left)).detach();
  EXPECT_TRUE(Eventually([&] { return sides->ended == 2; })) << "both sleep for ever";
}

}  // namespace
}  // namespace ag::cpu
