#include "base/signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "base/file.h"
#include "base/partial_files.h"

namespace ag {
namespace {

// Runs in its own process: waits for one signal, reports it, and waits for the other.
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

// Runs in its own process: is ended by the first signal, or asked by it and ended by the second.
void Leave(bool first_asks) {
  LeaveAtStopSignal();
  SetLastWords([] { std::fputs("bye\n", stderr); });
  if (first_asks) CatchStopSignals();
  ::kill(::getpid(), SIGINT);
  if (first_asks) std::fprintf(stderr, "%d\n", WaitForStopSignal());
  if (first_asks) ::kill(::getpid(), SIGTERM);
  while (true) ::pause();
}

TEST(SignalsDeathTest, LastWordsAreSaidBeforeTheEnd) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(Leave(false), testing::ExitedWithCode(kStoppedExitCode), "^bye\n$");
  EXPECT_EXIT(Leave(true), testing::ExitedWithCode(kStoppedExitCode), "^2\nbye\n$");
}

// Leaves one file incomplete and one complete, and is ended.
void StopWhileWriting(const std::string& folder) {
  const PartialFile partial(folder + "/partial");
  { const PartialFile whole(folder + "/whole"); }
  StopTwice(SIGINT, SIGINT);
}

TEST(SignalsDeathTest, TheSecondTakesUnfinishedFilesWithIt) {
  GTEST_FLAG_SET(death_test_style, "fast");  // The folder is this process's.
  const TempDir folder = *TempDir::Make("signals");
  for (const char* name : {"/partial", "/whole"}) {
    ASSERT_TRUE(WriteFileAtomically(folder.path() + name, "").ok());
  }
  EXPECT_EXIT(StopWhileWriting(folder.path()), testing::ExitedWithCode(kStoppedExitCode), "");
  EXPECT_FALSE(FileExists(folder.path() + "/partial"));
  EXPECT_TRUE(FileExists(folder.path() + "/whole"));
}

// Computes until the processor time is nearly used up, and ends normally.
void UseUpProcessorTime() {
  const rlimit limit{3, 3};
  ::setrlimit(RLIMIT_CPU, &limit);
  CatchStopSignals();
  volatile uint64_t turns = 0;
  while (StopSignal() == 0) turns = turns + 1;
  ::_exit(StopSignal() == SIGXCPU ? 0 : 1);
}

TEST(SignalsDeathTest, TheEndOfProcessorTimeAsksToStop) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(UseUpProcessorTime(), testing::ExitedWithCode(0),
              "the processor time is nearly used up");
}

TEST(SignalsDeathTest, OthersKeepTheirMeaning) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(StopTwice(SIGTERM, SIGUSR1), testing::KilledBySignal(SIGUSR1), "0, 15, 15");
}

}  // namespace
}  // namespace ag
