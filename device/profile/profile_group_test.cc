#include "device/profile/profile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "device/profile/testing/fake_device.h"
#include "device/profile/timing_data.h"

namespace ag {
namespace {

TEST(MeasureOn, ProfilesEachGroupOnce) {
  FakeDevice device;
  device.kernels = {{"slow", [] { return 2e6; }}, {"fast", [] { return 1e6; }}};
  LearnedTimes times(device.spec(), MeasureOn(device, {}, RealClock()), {.at_once = true});
  EXPECT_FALSE(times.MeasurementOf(ReluProblem()).has_value());
  const GroupTime first = times.Time(ReluProblem());
  EXPECT_TRUE(first.measured());
  EXPECT_EQ(first.ns, 1e6);
  EXPECT_EQ(first.kernel, "fast");
  const std::optional<Measurement> found = times.MeasurementOf(ReluProblem());
  ASSERT_TRUE(found.has_value());
  ASSERT_EQ(found->alternatives.size(), 1u);
  EXPECT_EQ(found->alternatives[0].first, "slow");
  device.kernels = {{"other", [] { return 5e5; }}};
  EXPECT_EQ(times.Time(ReluProblem()).kernel, "fast");
}

TEST(MeasureOn, SaysWhyAGroupFailed) {
  FakeDevice device;
  device.kernels = {{"broken", nullptr}};
  LearnedTimes times(device.spec(), MeasureOn(device, {}, RealClock()), {.at_once = true});
  const GroupTime time = times.Time(ReluProblem());
  EXPECT_EQ(time.state, TimeState::kFailed);
  EXPECT_EQ(ToString(time.failure), "UNIMPLEMENTED: kernel broken: fake: no broken");
  EXPECT_FALSE(times.MeasurementOf(ReluProblem()).has_value());
}

TEST(ProfileGroup, CoolsBeforeEachSampleWhereTheDeviceCan) {
  FakeDevice device;
  device.CoolCaches();
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
  device.CoolCaches();
  device.kernels = {
      {"best", [] { return 1e4; }},
      {"lost", [&] { return ++slow, 2e4; }},
      {"noisy", [&] { return ++noisy % 2 == 0 ? 1e4 : 1.2e4; }},
  };
  ProfileOptions options{.launches_before = 1, .samples_min = 7, .samples_max = 40};
  options.halving = false;
  const auto measured = ProfileGroup(device, ReluProblem(), options, RealClock());
  ASSERT_EQ(ToString(measured.status()), "OK");
  EXPECT_EQ(measured->samples, 15);
  EXPECT_EQ(slow, 1 + 15);   // One chunk.
  EXPECT_EQ(noisy, 1 + 40);  // Never settles: as many as allowed.
}

TEST(ProfileGroup, HalvesTheKernelsRoundByRound) {
  FakeDevice device;
  device.CoolCaches();
  std::map<std::string, int> runs;
  const auto takes = [&](const std::string& name, double ns) {
    device.kernels.emplace_back(name, [&runs, name, ns] { return ++runs[name], ns; });
  };
  takes("a", 1.3e4), takes("b", 1.1e4), takes("c", 1.2e4), takes("d", 1e4);
  takes("e", 1.05e4), takes("hopeless", 5e4);
  const ProfileOptions options{.launches_before = 1};
  const auto measured = ProfileGroup(device, ReluProblem(), options, RealClock());
  ASSERT_EQ(ToString(measured.status()), "OK");
  EXPECT_EQ(measured->kernel, "d");
  EXPECT_EQ(measured->alternatives.size(), 5u);
  EXPECT_EQ(runs["hopeless"], 1 + 3);
  EXPECT_EQ(runs["a"], 1 + 3);      // Three of six go on,
  EXPECT_EQ(runs["b"], 1 + 3 + 7);  // two of three are timed in full.
  EXPECT_EQ(runs["d"], 1 + 3 + 7 + 15);
  EXPECT_EQ(runs["e"], 1 + 3 + 7 + 15);
}

TEST(ProfileGroup, DoesNotBuildWhatLostAtANearShape) {
  FakeDevice device;
  device.CoolCaches();
  device.kernels = {{"fast", [] { return 1e4; }}, {"slow", [] { return 3e4; }}};
  KernelHistory history;
  const ProfileOptions options{.history = &history};
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(ProfileGroup(device, ReluProblem(), options, RealClock()).ok());
  }
  EXPECT_EQ(device.builds.size(), 4u);
  const auto measured = ProfileGroup(device, ReluProblem(), options, RealClock());
  ASSERT_EQ(ToString(measured.status()), "OK");
  EXPECT_EQ(device.builds.size(), 5u);
  EXPECT_EQ(measured->kernel, "fast");
  EXPECT_TRUE(measured->alternatives.empty());
}

TEST(TimingData, LargeTensorsAreNormalAndDifferent) {
  const TimingData data{};
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
  EXPECT_EQ(TimingData().Get(Sha256("a"), type)->bytes(), a.bytes());
}

// Constants of equal bytes have one name, as the two halves of a window's mask in Swin do.
TEST(TimingData, HasTheShapeThatIsAskedFor) {
  const TimingData data{};
  const TensorType rows{DType::kFloat32, {64, 49, 1}}, columns{DType::kFloat32, {64, 1, 49}};
  const Tensor a = *data.Get(Sha256("a"), rows), b = *data.Get(Sha256("a"), columns);
  EXPECT_EQ(a.type(), rows);
  EXPECT_EQ(b.type(), columns);
  EXPECT_EQ(a.bytes().data(), b.bytes().data());
  const TensorType integers{DType::kInt32, {64, 49}};
  EXPECT_EQ(data.Get(Sha256("a"), integers)->type(), integers);
}

}  // namespace
}  // namespace ag
