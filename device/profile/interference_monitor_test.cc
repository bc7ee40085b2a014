#include "device/profile/interference_monitor.h"

#include <gtest/gtest.h>

namespace ag {
namespace {

constexpr Nanos kMs{1'000'000};

TEST(BusyTicks, CountsWhatIsNotIdleOfOurCores) {
  const std::string text =
      "cpu  900 900 900 900 900 900 900 900 900 900\n"
      "cpu0 1 20 300 5000 60000 700000 8000000 90000000 7 8\n"
      "cpu1 1 1 1 1 1 1 1 1 1 1\n"
      "intr 12345 6 7\n";
  const auto is_first = [](int core) { return core == 0; };
  EXPECT_EQ(BusyTicks(text, is_first), 98'700'321);
  EXPECT_EQ(BusyTicks(text, [](int) { return true; }), 98'700'327);
  EXPECT_EQ(BusyTicks("", is_first), 0);
}

TEST(ProcessorMonitor, TellsWhatOthersUsedLately) {
  FakeClock clock;
  ProcessorTimes used;
  ProcessorMonitor meter([&] { return used.at = clock.Now(), used; }, clock);
  const auto pass = [&](int64_t ms, double ours, double others) {
    double last = 0;
    for (int64_t i = 0; i < ms / 50; ++i) {
      clock.Advance(50 * kMs);
      used.own += Nanos(static_cast<int64_t>(50e6 * ours));
      used.busy += Nanos(static_cast<int64_t>(50e6 * (ours + others)));
      last = meter.BusyCores();
    }
    return last;
  };
  EXPECT_EQ(meter.BusyCores(), 0);
  EXPECT_NEAR(pass(1000, 2.0, 0), 0, 1e-6) << "we are not others";
  EXPECT_LT(pass(50, 1.0, 1.0), kForeignCoresMax);
  EXPECT_GT(pass(100, 1.0, 1.0), kForeignCoresMax);
  EXPECT_NEAR(pass(1000, 1.0, 1.0), 1, 1e-6);
  EXPECT_LT(pass(400, 2.0, 0), kForeignCoresMax) << "gone";
}

TEST(ProcessorMonitor, ReadsNoMoreOftenThanItHelps) {
  FakeClock clock;
  int reads = 0;
  ProcessorMonitor meter([&] { return ++reads, ProcessorTimes{.at = clock.Now()}; }, clock);
  for (int i = 0; i < 100; ++i) {
    meter.BusyCores();
    clock.Advance(kMs);
  }
  EXPECT_EQ(reads, 3);
}

TEST(ReadProcessorTimes, OursAreAmongAll) {
  const ProcessorTimes before = ReadProcessorTimes();
  volatile double sink = 0;
  while (ReadProcessorTimes().own - before.own < 50 * kMs) {
    for (int i = 0; i < 100'000; ++i) sink = sink + i;
  }
  const ProcessorTimes after = ReadProcessorTimes();
  EXPECT_GT(after.at, before.at);
  EXPECT_GE(after.busy - before.busy, 20 * kMs);  // Counted in steps of 10 ms.
  const pid_t helper = ::getpid();                // A process that used as much as this one.
  EXPECT_GE(ReadProcessorTimes({&helper, 1}).own - ReadProcessorTimes().own, 20 * kMs);
}

class Steady : public InterferenceMonitor {
 public:
  double BusyCores() override { return cores; }
  double cores = 1;
};

TEST(QuietWait, WaitsWhileThereIsCreditAndNeverBeyondTheEnd) {
  FakeClock clock;
  Steady load;
  QuietWait wait(load, clock);
  const auto waited = [&](Nanos until) {
    const Nanos begin = clock.Now();
    wait.Wait(until);
    return clock.Now() - begin;
  };
  EXPECT_LE(waited(clock.Now() + 100 * kMs), 100 * kMs);
  EXPECT_GT(waited(Nanos::max()), 800 * kMs);
  EXPECT_LT(waited(Nanos::max()), 20 * kMs) << "the credit is used up";
  clock.Advance(4000 * kMs);
  const Nanos earned = waited(Nanos::max());
  EXPECT_GE(earned, 160 * kMs);
  EXPECT_LE(earned, 220 * kMs);
  load.cores = 0.1;
  clock.Advance(4000 * kMs);
  EXPECT_EQ(waited(Nanos::max()), Nanos{0});
}

}  // namespace
}  // namespace ag
