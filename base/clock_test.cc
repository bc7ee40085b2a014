#include "base/clock.h"

#include <gtest/gtest.h>

namespace ag {
namespace {

using namespace std::chrono_literals;

TEST(ClockTest, FakeMovesOnlyWhenTold) {
  FakeClock clock;
  EXPECT_EQ(clock.Now(), 0ns);
  EXPECT_EQ(FormatUnixSeconds(clock.UnixSeconds()), "2026-01-01T00:00:00Z");
  clock.SleepFor(1500ms);
  EXPECT_EQ(clock.Now(), 1500ms);
  EXPECT_EQ(FormatUnixSeconds(clock.UnixSeconds()), "2026-01-01T00:00:01Z");
  clock.Advance(24h);
  EXPECT_EQ(FormatUnixSeconds(clock.UnixSeconds()), "2026-01-02T00:00:01Z");
}

TEST(ClockTest, RealMovesOnItsOwn) {
  const Nanos before = RealClock().Now();
  RealClock().SleepFor(1us);
  EXPECT_GE(RealClock().Now() - before, 1us);
  EXPECT_GT(RealClock().UnixSeconds(), FakeClock::kUnixStart);
}

TEST(ClockTest, FormatsUnixSeconds) {
  const struct {
    int64_t seconds;
    const char* expected;
  } cases[] = {
      {0, "1970-01-01T00:00:00Z"},
      {-1, "1969-12-31T23:59:59Z"},
      {951'782'400, "2000-02-29T00:00:00Z"},
      {1'795'230'245, "2026-11-21T03:04:05Z"},
      {4'294'967'296, "2106-02-07T06:28:16Z"},
  };
  for (const auto& c : cases) EXPECT_EQ(FormatUnixSeconds(c.seconds), c.expected);
}

}  // namespace
}  // namespace ag
