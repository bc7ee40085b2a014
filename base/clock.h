// The source of time and of sleep. Code that depends on time takes a Clock, so that a test can pass
// a FakeClock. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace ag {

using Nanos = std::chrono::nanoseconds;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Nanos Now() = 0;            // Monotonic; for durations and deadlines.
  virtual int64_t UnixSeconds() = 0;  // Wall clock; for people and rows, never for decisions.
  virtual void SleepFor(Nanos duration) = 0;
};

Clock& RealClock();

// A clock that a test moves. SleepFor moves it and returns at once. It starts with Now() == 0 and
// UnixSeconds() == kUnixStart.
class FakeClock : public Clock {
 public:
  Nanos Now() override;
  int64_t UnixSeconds() override;
  void SleepFor(Nanos duration) override;
  void Advance(Nanos duration);

  static constexpr int64_t kUnixStart = 1'767'225'600;  // 2026-01-01T00:00:00Z.

 private:
  std::mutex mutex_;
  Nanos now_{0};
};

// Returns the UTC time as "2026-11-21T03:04:05Z".
std::string FormatUnixSeconds(int64_t seconds);

}  // namespace ag
