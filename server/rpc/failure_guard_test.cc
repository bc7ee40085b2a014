#include "server/rpc/failure_guard.h"

#include <gtest/gtest.h>

#include <vector>

namespace ag {
namespace {

using namespace std::chrono_literals;

TEST(FailureGuard, EndsTheConnectionsOfAHostThatResetsTooMuch) {
  FakeClock clock;
  std::vector<std::string> ended;
  FailureGuard guard(clock, [&](const std::string& peer) { ended.push_back(peer); });
  for (int i = 0; i < FailureGuard::kResetsMax; ++i) {
    guard.CountReset("ipv4:10.0.0.7:" + std::to_string(i));
    guard.CountReset("ipv6:%5B::1%5D:7");
    guard.CountReset("unix:");
  }
  EXPECT_TRUE(ended.empty());
  guard.CountError("ipv4:10.0.0.7:900");
  EXPECT_TRUE(ended.empty()) << "one of many behind the same address";
  guard.CountReset("ipv4:10.0.0.7:9");  // Its second.
  guard.CountReset("ipv4:10.0.0.7:8");
  guard.CountReset("ipv4:10.0.0.7:8");
  guard.CountReset("unix:");
  EXPECT_EQ(ended, (std::vector<std::string>{"ipv4:10.0.0.7:9", "ipv4:10.0.0.7:8"}));
  clock.Advance(1s);
  for (int i = 0; i < FailureGuard::kResetsMax * FailureGuard::kErrorsOfReset; ++i) {
    guard.CountError("ipv4:10.0.0.7:8");
  }
  EXPECT_EQ(ended.size(), 2U) << "another second";
}

}  // namespace
}  // namespace ag
