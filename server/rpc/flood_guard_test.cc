#include "server/rpc/flood_guard.h"

#include <gtest/gtest.h>

#include "base/clock.h"

namespace ag {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

constexpr int kMebibyte = 1 << 20, kMessage = 4 * kMebibyte;
constexpr char kOne[] = "ipv4:10.0.0.7:50000", kNext[] = "ipv4:10.0.0.7:50001",
               kOther[] = "ipv4:10.0.0.8:50000";

class FloodGuardTest : public ::testing::Test {
 protected:
  // Looks at one connection, which has received this much.
  bool IsFlood(const char* peer, uint64_t received, Nanos holds_acceptor = {}) {
    return IsFlood({peer, received, 0, holds_acceptor});
  }
  bool IsFlood(const FloodGuard::Seen& seen) { return guard.Look({&seen, 1}, false)[0]; }

  FakeClock clock;
  FloodGuard guard{clock, kMessage};
};

TEST_F(FloodGuardTest, WhoSendsMuchInCallsAndNoMessageIsAFlood) {
  for (const char* peer : {kOne, kNext, kOther}) guard.BeginCall(peer);
  EXPECT_FALSE(IsFlood("", uint64_t{1000} * kMebibyte)) << "a peer without a name";
  EXPECT_FALSE(IsFlood(kOne, 0));
  EXPECT_FALSE(IsFlood(kOne, 96 * kMebibyte)) << "messages may be on their way";
  EXPECT_FALSE(guard.suspects());
  EXPECT_TRUE(IsFlood(kOne, 97 * kMebibyte));
  EXPECT_TRUE(guard.suspects());
  EXPECT_FALSE(IsFlood(kNext, 8 * kMebibyte)) << "two messages may be on their way";
  EXPECT_TRUE(IsFlood(kNext, 9 * kMebibyte)) << "of that host";
  EXPECT_FALSE(IsFlood(kOther, 90 * kMebibyte));
  clock.Advance(FloodGuard::kSuspicion);
  EXPECT_FALSE(IsFlood(kNext, 90 * kMebibyte));
  EXPECT_FALSE(guard.suspects());
}

TEST_F(FloodGuardTest, MessagesAndTimeExplainBytes) {
  uint64_t bytes = 0;
  guard.BeginCall(kOne);
  for (int i = 0; i < 1000; ++i) {  // As fast as it can.
    guard.CountMessage(kOne);
    EXPECT_FALSE(IsFlood(kOne, bytes += kMessage));
  }
  for (int i = 0; i < 1000; ++i) {  // Slowly, within a message.
    clock.Advance(1s);
    EXPECT_FALSE(IsFlood(kOne, bytes += kMebibyte));
  }
  for (int i = 0; i < 100; ++i) guard.CountMessage(kOne);
  EXPECT_FALSE(IsFlood(kOne, bytes));
  EXPECT_TRUE(IsFlood(kOne, bytes += 97 * kMebibyte)) << "small messages pay nothing in advance";
  EXPECT_FALSE(IsFlood(kOne, kMebibyte)) << "another connection of that name";
}

TEST_F(FloodGuardTest, WhoTakesAnswersWithoutACallIsAFlood) {
  EXPECT_FALSE(IsFlood({kOne, 20'000, 20'000})) << "a handshake";
  EXPECT_FALSE(IsFlood({kOne, 4'020'000, 100'000})) << "a message that comes slowly";
  guard.BeginCall(kOne);
  EXPECT_FALSE(IsFlood({kOne, 5'000'000, 1'000'000}));
  guard.EndCall(kOne);
  EXPECT_FALSE(IsFlood({kOne, 5'000'000, 2'000'000}));
  clock.Advance(4s);
  EXPECT_FALSE(IsFlood({kOne, 5'000'000, 3'000'000})) << "what was on its way";
  for (uint64_t hour = 1; hour <= 24; ++hour) {
    clock.Advance(3600s);
    EXPECT_FALSE(IsFlood({kOne, 5'000'000 + hour * 2040, 3'000'000 + hour * 2040}))
        << "a ping each 30 s";
  }
  clock.Advance(1s);
  EXPECT_TRUE(IsFlood({kOne, 5'100'000, 3'100'000})) << "pings as fast as they go";
}

TEST_F(FloodGuardTest, WhoHoldsTheAcceptorAndAsksNothingIsAFlood) {
  for (const char* peer : {kOne, kNext, kOther}) guard.BeginCall(peer);
  EXPECT_FALSE(IsFlood(kOne, kMebibyte, 200ms));
  EXPECT_FALSE(IsFlood(kOther, 1000, 1s)) << "the machine is slow";
  guard.CountMessage(kNext);
  EXPECT_FALSE(IsFlood(kNext, kMebibyte, 300ms));
  EXPECT_FALSE(IsFlood(kNext, 2 * kMebibyte, 600ms)) << "an upload";
  EXPECT_TRUE(IsFlood(kOne, kMebibyte, 300ms));
}

TEST_F(FloodGuardTest, WhileTheMemoryIsFullWhoSendsMuchIsAFlood) {
  const FloodGuard::Seen before[] = {{kOne, 100}, {kOther, 100}};
  EXPECT_EQ(guard.Look(before, true), (std::vector<bool>{false, false})) << "not known yet";
  const FloodGuard::Seen now[] = {{kOne, 200}, {kOther, 4000}};
  EXPECT_EQ(guard.Look(now, true), (std::vector<bool>{false, true}));
  EXPECT_FALSE(guard.suspects()) << "it may be honest";
}

}  // namespace
}  // namespace ag
