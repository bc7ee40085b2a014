#include "net/loopback.h"

#include <gtest/gtest.h>

namespace ag {
namespace {

TEST(Loopback, WhatOtherMachinesReach) {
  struct Case {
    const char* address;
    bool is_loopback;
  };
  const Case cases[] = {
      {"127.0.0.1:7450", true},       {"127.8.9.10:0", true},
      {"localhost:7450", true},       {"[::1]:7450", true},
      {"unix:/tmp/a:1", true},        {"[::ffff:127.0.0.1]:1", true},
      {"0.0.0.0:7450", false},        {":7450", false},
      {"[::]:7450", false},           {"10.1.2.3:7450", false},
      {"1.127.0.0:1", false},         {"[fe80::1]:7450", false},
      {"[::ffff:10.0.0.1]:1", false}, {"no host at all:1", false},
  };
  for (const Case& c : cases) EXPECT_EQ(IsLoopback(c.address), c.is_loopback) << c.address;
}

}  // namespace
}  // namespace ag
