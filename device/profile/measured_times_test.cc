#include "device/profile/measured_times.h"

#include <gtest/gtest.h>

#include <cmath>

#include "device/profile/fake_device.h"
#include "device/profile/timing_data.h"

namespace ag {
namespace {

TEST(MeasuredTimes, MeasuresOnceAndKeepsTheRest) {
  FakeDevice device;
  device.kernels = {{"slow", [] { return 2e6; }}, {"fast", [] { return 1e6; }}};
  MeasuredTimes times(device, {}, RealClock());
  EXPECT_EQ(times.Find(ReluProblem()), nullptr);
  const GroupTime first = times.Time(ReluProblem());
  EXPECT_TRUE(first.measured);
  EXPECT_EQ(first.ns, 1e6);
  EXPECT_EQ(first.kernel, "fast");
  const Measurement* found = times.Find(ReluProblem());
  ASSERT_NE(found, nullptr);
  ASSERT_EQ(found->alternatives.size(), 1u);
  EXPECT_EQ(found->alternatives[0].first, "slow");
  device.kernels = {{"other", [] { return 5e5; }}};
  EXPECT_EQ(times.Time(ReluProblem()).kernel, "fast");
}

TEST(MeasuredTimes, AGroupThatFailsIsTheLastResort) {
  FakeDevice device;
  device.kernels = {{"broken", nullptr}};
  MeasuredTimes times(device, {}, RealClock());
  const GroupTime time = times.Time(ReluProblem());
  EXPECT_FALSE(time.measured);
  EXPECT_EQ(time.ns, 100 * RooflineNs(ReluProblem(), device.spec()));
  EXPECT_EQ(times.Find(ReluProblem()), nullptr);
}

TEST(ProfileGroup, CoolsBeforeEachSampleWhereTheDeviceCan) {
  FakeDevice device;
  device.cools = true;
  int runs = 0;
  device.kernels = {{"only", [&] { return ++runs, 1e3; }}};
  const auto measured = ProfileGroup(device, ReluProblem(), {.launches_before = 3}, RealClock());
  ASSERT_EQ(ToString(measured.status()), "OK");
  EXPECT_EQ(device.coolings, measured->samples);
  EXPECT_EQ(runs, measured->samples + 3);  // One run a sample, because a second one would be warm.
}

TEST(ProfileGroup, StopsWhenSamplesHaveSettledOrTheKernelHasLost) {
  FakeDevice device;
  int slow = 0, noisy = 0;
  device.cools = true;
  device.kernels = {
      {"best", [] { return 1e4; }},
      {"lost", [&] { return ++slow, 2e4; }},
      {"noisy", [&] { return ++noisy % 2 == 0 ? 1e4 : 1.2e4; }},
  };
  const ProfileOptions options{.launches_before = 1, .samples_min = 7, .samples_max = 40};
  const auto measured = ProfileGroup(device, ReluProblem(), options, RealClock());
  ASSERT_EQ(ToString(measured.status()), "OK");
  EXPECT_EQ(measured->samples, 15);
  EXPECT_EQ(slow, 1 + 15);   // One chunk.
  EXPECT_EQ(noisy, 1 + 40);  // Never settles: as many as allowed.
}

TEST(TimingData, LargeTensorsAreNormalAndDifferent) {
  const TimingData data(1);
  const TensorType type{DType::kFloat32, {300'000}};
  const Tensor a = *data.Get(Sha256("a"), type), b = *data.Get(Sha256("b"), type);
  double sum = 0, squares = 0;
  for (const float x : a.As<float>()) {
    EXPECT_NE(std::fpclassify(x), FP_ZERO);
    EXPECT_NE(std::fpclassify(x), FP_SUBNORMAL);
    sum += x;
    squares += double{x} * x;
  }
  EXPECT_NEAR(sum / 300'000, 0, 0.002);
  EXPECT_NEAR(std::sqrt(squares / 300'000), 0.1, 0.002);
  EXPECT_NE(a.bytes(), b.bytes());
  EXPECT_EQ(data.Get(Sha256("a"), type)->bytes().data(), a.bytes().data());
  EXPECT_EQ(TimingData(1).Get(Sha256("a"), type)->bytes(), a.bytes());
}

}  // namespace
}  // namespace ag
