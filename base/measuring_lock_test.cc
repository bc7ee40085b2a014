#include "base/measuring_lock.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace ag {
namespace {

using namespace std::chrono_literals;

class MeasuringLockTest : public testing::Test {
 protected:
  bool Free() const { return FileLock::TryExclusive(path_, "measurement").ok(); }

  const TempDir folder_ = TempDir::Make("measuring_lock_test.").value();
  const std::string path_ = folder_.path() + "/lock";
};

TEST_F(MeasuringLockTest, PathComesFromTheEnvironment) {
  ::setenv("AUTOGRAPH_MEASURING_LOCK", "/some/lock", 1);
  EXPECT_EQ(MeasuringLockPath(), "/some/lock");
  ::unsetenv("AUTOGRAPH_MEASURING_LOCK");
  EXPECT_TRUE(MeasuringLockPath().ends_with("/autograph-measuring.lock")) << MeasuringLockPath();
}

TEST_F(MeasuringLockTest, SearchesShareAndMeasurementsDoNot) {
  SearchTurn first(path_);
  SearchTurn second(path_);
  EXPECT_EQ(ToString(first.Enter()), "OK");
  EXPECT_EQ(ToString(second.Enter()), "OK");
  first.Leave();
  EXPECT_FALSE(Free());
  second.Leave();
  EXPECT_TRUE(Free());
}

TEST_F(MeasuringLockTest, ATryDoesNotWait) {
  SearchTurn turn(path_);
  {
    const FileLock measurement = FileLock::TryExclusive(path_, "measurement").value();
    EXPECT_FALSE(turn.TryEnter().value());
  }
  EXPECT_TRUE(turn.TryEnter().value());
  EXPECT_FALSE(Free());
  turn.Leave();
  EXPECT_TRUE(Free());
}

TEST_F(MeasuringLockTest, AWaitSaysWhoHoldsTheLockAndMayBeGivenUp) {
  SearchTurn measuring(path_);
  ASSERT_TRUE(measuring.Enter().ok());
  std::vector<pid_t> holders;
  bool enough = false;
  const LockWait wait = {[&](pid_t holder) {
                           holders.push_back(holder);
                           enough = true;
                         },
                         [&] { return enough; }};
  EXPECT_EQ(ToString(WaitForLock(path_, FileLock::Mode::kExclusive, wait).status()),
            fmt::format("CANCELLED: gave up waiting for lock {}", path_));
  EXPECT_EQ(holders, (std::vector<pid_t>{::getpid(), 0}));
  measuring.Leave();
  // After a give-up the thread releases the lock by itself.
  EXPECT_TRUE(WaitForLock(path_, FileLock::Mode::kExclusive, {}).ok());
}

TEST_F(MeasuringLockTest, TheHolderIsNamed) {
  EXPECT_EQ(MeasuringLockText(123), "the measuring lock, held by process 123");
  EXPECT_EQ(MeasuringLockText(kUnknownHolder), "the measuring lock, held by another process");
  EXPECT_EQ(MeasuringLockText(0), "");
}

TEST_F(MeasuringLockTest, YieldPausesOncePerSlice) {
  FakeClock clock;
  clock.Advance(1s);
  SearchTurn turn(path_);
  EXPECT_EQ(ToString(turn.Yield(clock)), "OK");  // Nothing to yield.
  EXPECT_EQ(ToString(turn.Enter()), "OK");
  EXPECT_EQ(ToString(turn.Yield(clock)), "OK");
  clock.Advance(49ms);
  EXPECT_EQ(ToString(turn.Yield(clock)), "OK");
  EXPECT_EQ(clock.Now(), 1049ms);
  clock.Advance(1ms);
  EXPECT_EQ(ToString(turn.Yield(clock)), "OK");
  EXPECT_EQ(clock.Now(), 1051ms);  // 1 ms of pause.
  EXPECT_FALSE(Free());            // It has entered again.
}

}  // namespace
}  // namespace ag
