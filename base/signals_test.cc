#include "base/signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>

namespace ag {
namespace {

// Runs in a process of its own: takes one signal, says so, takes the other.
void StopTwice(int first, int second) {
  CatchStopSignals();
  const int before = StopSignal();
  ::kill(::getpid(), first);
  const int taken = WaitForStopSignal();
  std::fprintf(stderr, "%d, %d, %d\n", before, taken, StopSignal());
  ::kill(::getpid(), second);
  while (true) ::pause();
}

TEST(SignalsDeathTest, TheFirstAsksAndTheSecondEnds) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(StopTwice(SIGTERM, SIGTERM), testing::ExitedWithCode(kStoppedExitCode), "0, 15, 15");
  EXPECT_EXIT(StopTwice(SIGINT, SIGTERM), testing::ExitedWithCode(kStoppedExitCode), "0, 2, 2");
}

TEST(SignalsDeathTest, OthersKeepTheirMeaning) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(StopTwice(SIGTERM, SIGUSR1), testing::KilledBySignal(SIGUSR1), "0, 15, 15");
}

}  // namespace
}  // namespace ag
