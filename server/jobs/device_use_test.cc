#include "server/jobs/device_use.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/reason.h"
#include "server/store/open_store.h"

namespace ag {
namespace {

struct UseBench {
  TempDir dir = *TempDir::Make("device-use-");
  FakeClock clock;
  Store store = *OpenStore({.folder = dir.path()}, clock);
  std::unique_ptr<DeviceUse> Open() {
    return *DeviceUse::Open(*store.jobs, clock, [](const std::string& tenant) {
      return tenant == "bob" ? 100.0 : 0.0;
    });
  }
};

TEST(DeviceUse, IsCountedByTenantAndSurvivesARestart) {
  UseBench bench;
  auto use = bench.Open();
  ASSERT_TRUE(use->Add("ann", std::chrono::milliseconds(1500)).ok());
  ASSERT_TRUE(use->Add("ann", std::chrono::seconds(2)).ok());
  ASSERT_TRUE(use->Add("", std::chrono::seconds(9)).ok());
  EXPECT_DOUBLE_EQ(use->UsedSeconds("ann"), 3.5);
  EXPECT_EQ(use->UsedSeconds("bob"), 0);
  use = bench.Open();
  EXPECT_DOUBLE_EQ(use->UsedSeconds("ann"), 3.5);
  EXPECT_EQ(use->UsedSeconds(""), 0);
}

TEST(DeviceUse, AQuotaIsOfOneDay) {
  UseBench bench;
  const auto use = bench.Open();
  ASSERT_TRUE(use->Add("bob", std::chrono::seconds(60)).ok());
  EXPECT_TRUE(use->Check("bob").ok());
  bench.clock.Advance(std::chrono::hours(3));
  ASSERT_TRUE(use->Add("bob", std::chrono::seconds(50)).ok());
  const Status over = use->Check("bob");
  EXPECT_EQ(over.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(over), "QUOTA_EXCEEDED");
  EXPECT_EQ(Message(over), "bob has used 110 of its 100 device seconds of a day; more in 1260 min");
  EXPECT_EQ(RetryPauseOf(over), std::chrono::hours(21));
  EXPECT_TRUE(use->Check("ann").ok()) << "without a limit";
  EXPECT_TRUE(use->Check("").ok()) << "without tokens there are no tenants";
  bench.clock.Advance(std::chrono::hours(21));
  EXPECT_TRUE(use->Check("bob").ok());
  EXPECT_EQ(use->UsedSeconds("bob"), 50);
  bench.clock.Advance(std::chrono::hours(24));
  EXPECT_EQ(use->UsedSeconds("bob"), 0);
  ASSERT_TRUE(use->Add("bob", std::chrono::seconds(1)).ok());
  EXPECT_EQ(bench.store.jobs->DeviceUseSince(0)->size(), 1u) << "old hours go from the store";
}

}  // namespace
}  // namespace ag
