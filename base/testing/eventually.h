// For tests: waiting for what comes by itself, on another thread or in another process.
#pragma once

#include "base/clock.h"

namespace ag {

// Polls until `condition` is true; returns false after `seconds`.
template <class Condition>
bool Eventually(Condition condition, double seconds = 20) {
  for (int i = 0; i < seconds * 100; ++i) {
    if (condition()) return true;
    RealClock().SleepFor(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace ag
