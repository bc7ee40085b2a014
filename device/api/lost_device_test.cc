#include "device/api/lost_device.h"

#include <gtest/gtest.h>

namespace ag {
namespace {

TEST(LostDevice, TheMarkStaysAndIsNoPartOfCodeOrMessage) {
  const Status error = Err(StatusCode::kUnavailable, "the context is gone");
  EXPECT_FALSE(IsLostDevice(error));
  EXPECT_FALSE(IsLostDevice(OkStatus()));
  const Status lost = Within(LostDevice(error), "candidate");
  EXPECT_TRUE(IsLostDevice(lost));
  EXPECT_EQ(ToString(lost), "UNAVAILABLE: candidate: the context is gone");
  EXPECT_TRUE(IsLostDevice(LostDevice(Err(StatusCode::kInternal, "?"))));
}

}  // namespace
}  // namespace ag
