#include "base/clock.h"

#include <fmt/format.h>

#include <thread>

namespace ag {
namespace {

class SystemClock : public Clock {
 public:
  Nanos Now() override { return std::chrono::steady_clock::now().time_since_epoch(); }
  int64_t UnixSeconds() override {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::floor<std::chrono::seconds>(now).count();
  }
  void SleepFor(Nanos duration) override { std::this_thread::sleep_for(duration); }
};

}  // namespace

Clock& RealClock() {
  static SystemClock* const kClock = new SystemClock;  // Outlives every thread.
  return *kClock;
}

Nanos FakeClock::Now() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return now_;
}

int64_t FakeClock::UnixSeconds() {
  return kUnixStart + std::chrono::floor<std::chrono::seconds>(Now()).count();
}

void FakeClock::SleepFor(Nanos duration) { Advance(duration); }

void FakeClock::Advance(Nanos duration) {
  const std::lock_guard<std::mutex> lock(mutex_);
  now_ += duration;
}

std::string FormatUnixSeconds(int64_t seconds) {
  namespace chrono = std::chrono;
  const chrono::sys_seconds time{chrono::seconds{seconds}};
  const auto day = chrono::floor<chrono::days>(time);
  const chrono::year_month_day date(day);
  const chrono::hh_mm_ss of_day(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     of_day.hours().count(), of_day.minutes().count(), of_day.seconds().count());
}

}  // namespace ag
