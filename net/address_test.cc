#include "net/address.h"

#include <gtest/gtest.h>

namespace ag {
namespace {

TEST(Address, IsKnownByItsForm) {
  for (const char* good : {"127.0.0.1:7450", "[::1]:1", ":7450", "host:1", "unix:/a", "unix:b"}) {
    EXPECT_EQ(ToString(CheckListenAddress(good)), "OK") << good;
    EXPECT_EQ(WrongServerAddress(good), "") << good;
  }
  for (const std::string bad :
       {"nonsense", "127.0.0.1", "host:", "host:x", "host:-1", "host:65536", "unix:", ""}) {
    const std::string what = bad + ": expected HOST:PORT or unix:PATH";
    EXPECT_EQ(ToString(CheckListenAddress(bad)), "INVALID_ARGUMENT: " + what);
    EXPECT_EQ(WrongServerAddress(bad), what);
  }
}

TEST(Address, OnlyAListenerLeavesThePortToTheSystem) {
  EXPECT_EQ(WrongListenAddress("[::1]:0"), "");
  EXPECT_EQ(WrongServerAddress("[::1]:0"), "[::1]:0: expected HOST:PORT or unix:PATH");
}

}  // namespace
}  // namespace ag
