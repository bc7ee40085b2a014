#include "device/profile/profile.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/measuring_lock.h"
#include "base/random.h"
#include "device/api/lost_device.h"
#include "device/profile/session.h"
#include "device/profile/testing/fake_device.h"
#include "plan/interval.h"

namespace ag {
namespace {

std::vector<PlanToTime> PlansOf(std::vector<FakeDevice::FakeExecutable>& executables) {
  std::vector<PlanToTime> plans;
  for (auto& executable : executables) plans.push_back({&executable, {}, {}});
  return plans;
}

TEST(Judge, Table) {
  const struct {
    const char* name;
    double low, high;
    Verdict verdict;
  } kCases[] = {
      {"well above", 1.05, 1.10, Verdict::kFaster},
      {"well below", 0.90, 0.95, Verdict::kSlower},
      {"within", 0.995, 1.005, Verdict::kSame},
      {"sure but small", 1.002, 1.008, Verdict::kSame},
      {"too wide", 0.9, 1.1, Verdict::kAmbiguous},
      {"touches the effect", 1.005, 1.05, Verdict::kAmbiguous},
  };
  for (const auto& c : kCases) EXPECT_EQ(Judge(c.low, c.high, 0.01), c.verdict) << c.name;
}

TEST(Summarize, MedianAndOrder) {
  const double samples[] = {5, 1, 4, 2, 3};
  const Latency latency = Summarize(samples);
  EXPECT_EQ(latency.median_ns, 3);
  EXPECT_EQ(latency.low_ns, 1);
  EXPECT_EQ(latency.high_ns, 5);
  const double one[] = {7};
  EXPECT_EQ(Summarize(one).low_ns, 7);
}

// A look of a GPU takes many times as long as its canary's time.
TEST(WarmUp, CountsWhatALookTakes) {
  FakeClock clock;
  FakeDevice device;
  device.canary = [&] {
    clock.Advance(Nanos(1'000'000));
    return 30e3;
  };
  ASSERT_TRUE(WarmUp(device, {.warm_up = Nanos(200'000'000)}, clock).ok());
  EXPECT_EQ(device.canaries, 200);
}

// Compares the closed form with real resampling.
TEST(BootstrapRanks, AgreeWithDrawing) {
  for (const int n : {9, 15, 45}) {
    Random random(5);
    std::vector<int> medians;
    for (int i = 0; i < 40'000; ++i) {
      std::vector<int> draw(n);
      for (int& d : draw) d = static_cast<int>(random.Below(n));
      std::nth_element(draw.begin(), draw.begin() + n / 2, draw.end());
      medians.push_back(draw[n / 2]);
    }
    std::sort(medians.begin(), medians.end());
    const OrderRanks ranks = BootstrapRanks(n, 0.95);
    EXPECT_NEAR(ranks.low, medians[medians.size() * 25 / 1000], 1) << n;
    EXPECT_NEAR(ranks.high, medians[medians.size() * 975 / 1000], 1) << n;
    EXPECT_EQ(ranks.low, n - 1 - ranks.high);
  }
}

// A plan compared with itself: at most 1 % of the comparisons may say FASTER or SLOWER.
int FalseVerdicts(const std::function<double(Random&)>& time, int comparisons) {
  FakeDevice device;
  FakeClock clock;
  Random random(99);
  const auto times = [&] { return time(random); };
  int wrong = 0;
  for (int i = 0; i < comparisons; ++i) {
    std::vector<FakeDevice::FakeExecutable> executables(2, FakeDevice::FakeExecutable(times));
    const auto timings = *ProfilePlans(device, PlansOf(executables), {}, clock);
    const Verdict verdict = timings[1].verdict;
    wrong += verdict == Verdict::kFaster || verdict == Verdict::kSlower ? 1 : 0;
  }
  return wrong;
}

TEST(ProfilePlans, FalseVerdictsAreRare) {
  constexpr int kComparisons = 10'000;
  const auto gaussian = [](double sigma) {
    return [sigma](Random& random) { return 3e6 * std::exp(sigma * random.Normal()); };
  };
  const auto heavy = [](Random& random) {
    const double tail = random.Below(20) == 0 ? 1 + 4 * random.Unit() : 1;
    return 3e6 * tail * std::exp(0.02 * random.Normal());
  };
  EXPECT_LE(FalseVerdicts(gaussian(0.02), kComparisons), kComparisons / 100);
  EXPECT_LE(FalseVerdicts(gaussian(0.1), kComparisons / 5), kComparisons / 5 / 100);
  EXPECT_LE(FalseVerdicts(heavy, kComparisons / 5), kComparisons / 5 / 100);
}

TEST(ProfilePlans, SeesRealDifferences) {
  const struct {
    double factor;
    Verdict verdict;
  } kCases[] = {{1.0, Verdict::kSame}, {0.9, Verdict::kFaster}, {1.1, Verdict::kSlower}};
  FakeDevice device;
  FakeClock clock;
  Random random(3);
  for (const auto& c : kCases) {
    const auto base = [&] { return 3e6 * std::exp(0.005 * random.Normal()); };
    const auto other = [&] { return base() * c.factor; };
    std::vector<FakeDevice::FakeExecutable> executables{FakeDevice::FakeExecutable(base),
                                                        FakeDevice::FakeExecutable(other)};
    const auto timings = *ProfilePlans(device, PlansOf(executables), {}, clock);
    EXPECT_EQ(timings[1].verdict, c.verdict) << c.factor;
    EXPECT_NEAR(timings[1].speedup, 1 / c.factor, 0.01);
    EXPECT_LE(timings[1].speedup_low, timings[1].speedup);
    EXPECT_EQ(timings[1].blocks % 9, 0);
    EXPECT_EQ(timings[0].speedup, 1);
    EXPECT_NEAR(timings[0].latency.median_ns, 3e6, 3e4);
  }
}

TEST(ProfilePlans, ThrowsAwayBlocksWithAMovedCanary) {
  FakeDevice device;
  FakeClock clock;
  int look = 0;
  // After warm-up (2000 canaries) every 60th look begins a disturbed stretch of six.
  device.canary = [&] { return look++ > 2000 && look % 60 < 6 ? 150'000.0 : 100'000.0; };
  std::vector<FakeDevice::FakeExecutable> executables(
      2, FakeDevice::FakeExecutable([] { return 3e6; }));
  const auto timings = *ProfilePlans(device, PlansOf(executables), {}, clock);
  EXPECT_GT(timings[1].discarded, 0);
  EXPECT_EQ(timings[1].blocks, 9);
  EXPECT_EQ(timings[1].verdict, Verdict::kSame);
}

// Other processes that use as many cores as the test says.
class FakeLoad : public InterferenceMonitor {
 public:
  explicit FakeLoad(std::function<double(int)> cores) : cores_(std::move(cores)) {}
  double BusyCores() override { return cores_(asked_++); }

 private:
  const std::function<double(int)> cores_;
  int asked_ = 0;
};

TEST(ProfilePlans, ThrowsAwayBlocksBesideForeignLoad) {
  FakeDevice device;
  FakeClock clock;
  FakeLoad load([](int asked) { return asked % 5 == 4 ? 1.0 : 0.1; });  // Asked once per block.
  std::vector<FakeDevice::FakeExecutable> executables(
      2, FakeDevice::FakeExecutable([] { return 3e6; }));
  const auto timings = *ProfilePlans(device, PlansOf(executables), {.interference = &load}, clock);
  EXPECT_EQ(timings[1].discarded, 2);
  EXPECT_EQ(timings[1].blocks, 9);
  EXPECT_EQ(timings[1].disturbed, 0);
}

TEST(ProfilePlans, OthersWhoStayAreMeasuredBesideAndCounted) {
  FakeDevice device;
  FakeClock clock;
  FakeLoad load([](int) { return 1.0; });
  std::vector<FakeDevice::FakeExecutable> executables{
      FakeDevice::FakeExecutable([] { return 3e6; }),
      FakeDevice::FakeExecutable([] { return 1e6; })};
  const auto timings = *ProfilePlans(device, PlansOf(executables), {.interference = &load}, clock);
  EXPECT_EQ(timings[1].discarded, 9);
  EXPECT_EQ(timings[1].blocks, 9);
  EXPECT_EQ(timings[1].disturbed, 9);
  EXPECT_EQ(timings[1].verdict, Verdict::kFaster);
}

TEST(ProfileGroup, OthersWhoStayCostOneChunkOfAKernel) {
  FakeDevice device;
  FakeClock clock;
  FakeLoad load([](int) { return 1.0; });
  device.kernels = {{"a", [] { return 2e5; }}};
  const Measurement alone = *ProfileGroup(device, ReluProblem(), {}, clock);
  const Measurement beside = *ProfileGroup(device, ReluProblem(), {.interference = &load}, clock);
  EXPECT_EQ(alone.discarded + alone.disturbed, 0);
  EXPECT_GT(beside.discarded, 0);
  EXPECT_EQ(beside.samples, alone.samples);
  EXPECT_EQ(beside.disturbed, beside.samples);
}

// Noise and others at once: each is waited out a few times, and then the group is measured.
TEST(ProfileGroup, NoiseBesideOthersEnds) {
  FakeDevice device;
  FakeClock clock;
  FakeLoad load([](int) { return 1.0; });
  int look = 0;
  device.canary = [&] { return look++ > 2000 && look / 6 % 2 == 0 ? 150'000.0 : 100'000.0; };
  device.kernels = {{"a", [] { return 2e5; }}};
  const Measurement beside = *ProfileGroup(device, ReluProblem(), {.interference = &load}, clock);
  EXPECT_GT(beside.discarded, 0);
  EXPECT_EQ(beside.disturbed, beside.samples);
}

TEST(ProfileGroup, AGroupWhoseTimeIsUpIsCancelled) {
  FakeDevice device;
  FakeClock clock;
  const ProfileOptions options{.until = Nanos{1'000'000}};
  int runs = 0;
  const auto kernel = [&] {
    clock.Advance(Nanos{100'000});
    ++runs;
    return 1e5;
  };
  device.kernels = {{"a", kernel}, {"b", kernel}};
  EXPECT_EQ(ToString(ProfileGroup(device, ReluProblem(), options, clock).status()),
            "CANCELLED: not measured: the time for it is up");
  EXPECT_EQ(runs, 10) << "nothing runs when the time is up";
}

TEST(ProfilePlans, WhoseTimeIsUpHaveTheirBlocksSoFar) {
  FakeDevice device;
  FakeClock clock;
  const auto run = [&] {
    clock.Advance(Nanos{3'000'000});
    return 3e6;
  };
  std::vector<FakeDevice::FakeExecutable> executables(3, FakeDevice::FakeExecutable(run));
  for (const auto& [until, blocks] : {std::pair(Nanos{0}, 1), std::pair(Nanos{80'000'000}, 3)}) {
    const auto cut =
        *ProfilePlans(device, PlansOf(executables), {.until = clock.Now() + until}, clock);
    EXPECT_EQ(cut[1].blocks, blocks);
    EXPECT_EQ(cut[2].blocks, blocks);
    EXPECT_EQ(cut[2].verdict, Verdict::kAmbiguous);
  }
}

TEST(ProfilePlans, IsAmbiguousOnAMachineThatIsNeverQuiet) {
  FakeDevice device;
  FakeClock clock;
  int look = 0;
  device.canary = [&] { return look++ / 6 % 2 == 0 ? 100'000.0 : 200'000.0; };
  std::vector<FakeDevice::FakeExecutable> executables{
      FakeDevice::FakeExecutable([] { return 3e6; }),
      FakeDevice::FakeExecutable([] { return 1e6; })};
  const auto timings = *ProfilePlans(device, PlansOf(executables), {}, clock);
  EXPECT_TRUE(timings[1].status.ok());
  EXPECT_EQ(timings[1].verdict, Verdict::kAmbiguous);
  EXPECT_LT(timings[1].blocks, 9);
  EXPECT_GT(timings[1].discarded, 0);
}

// What was timed has taken the canary's place in the caches: the first runs after it are slower.
TEST(ProfilePlans, ACanaryThatIsColdAfterEachBlockThrowsNothingAway) {
  FakeDevice device;
  FakeClock clock;
  int look = 0;
  device.canary = [&] {
    const int run = look++ - 2000;  // After warm-up, three before a block and three after it.
    return run < 0 || run % 6 < 3 ? 100'000.0 : 150'000.0 - 15'000.0 * (run % 6 - 3);
  };
  std::vector<FakeDevice::FakeExecutable> executables(
      2, FakeDevice::FakeExecutable([] { return 3e6; }));
  const auto timings = *ProfilePlans(device, PlansOf(executables), {}, clock);
  EXPECT_EQ(timings[1].discarded, 0);
  EXPECT_EQ(timings[1].verdict, Verdict::kSame);
}

TEST(ProfilePlans, AFailingCandidateIsOutAndTheOthersGoOn) {
  FakeDevice device;
  FakeClock clock;
  std::vector<FakeDevice::FakeExecutable> executables(
      3, FakeDevice::FakeExecutable([] { return 3e6; }));
  executables[1].fails = Err(StatusCode::kInternal, "broken");
  const auto timings = *ProfilePlans(device, PlansOf(executables), {}, clock);
  EXPECT_EQ(ToString(timings[1].status), "INTERNAL: broken");
  EXPECT_EQ(timings[2].verdict, Verdict::kSame);
}

TEST(ProfilePlans, ALostDeviceEndsIt) {
  FakeDevice device;
  FakeClock clock;
  std::vector<FakeDevice::FakeExecutable> executables(
      2, FakeDevice::FakeExecutable([] { return 3e6; }));
  executables[1].fails = LostDevice(Err(StatusCode::kUnavailable, "lost"));
  EXPECT_EQ(ToString(ProfilePlans(device, PlansOf(executables), {}, clock).status()),
            "UNAVAILABLE: lost");
}

TEST(ProfileGroup, PicksTheFastestKernel) {
  FakeDevice device;
  FakeClock clock;
  device.kernels = {
      {"slow", [] { return 3e6; }}, {"fast", [] { return 1e6; }}, {"missing", nullptr}};
  device.active_cores = {{"slow", 8}, {"fast", 3}};
  const Measurement m = *ProfileGroup(device, ReluProblem(), {}, clock);
  EXPECT_EQ(m.kernel, "fast");
  EXPECT_EQ(m.active_cores, 3);
  EXPECT_EQ(m.latency.median_ns, 1e6);
  EXPECT_GE(m.samples, 7);
  EXPECT_EQ(m.canary_ns, 100'000);
  ASSERT_EQ(m.alternatives.size(), 1u);
  EXPECT_EQ(m.alternatives[0], (std::pair<std::string, double>("slow", 3e6)));
}

TEST(ProfilePair, TimesBothGroupsOnTwoStreams) {
  FakeDevice device;
  FakeClock clock;
  device.kernels = {{"fast", [] { return 1.5e6; }}};
  const PairProblem pair{{ReluProblem(), ReluProblem()}, {"fast", "fast"}};
  const Measurement m = *ProfilePair(device, pair, {}, clock);
  EXPECT_EQ(m.latency.median_ns, 1.5e6);
  EXPECT_GE(m.samples, 7);
  EXPECT_EQ(m.canary_ns, 100'000);
  EXPECT_EQ(m.kernel, "");
  EXPECT_EQ(m.active_cores, 0);
  ASSERT_EQ(device.builds.size(), 1u);
  EXPECT_EQ(device.builds[0].streams.size(), 2u);
  EXPECT_EQ(ToString(ProfilePair(device, {pair.groups, {"none", "fast"}}, {}, clock).status()),
            "UNIMPLEMENTED: fake: no none");
}

TEST(ProfileGroup, RejectsImpossibleTimes) {
  FakeDevice device;
  FakeClock clock;
  device.kernels = {{"zero", [] { return 0.0; }}};
  EXPECT_EQ(ToString(ProfileGroup(device, ReluProblem(), {}, clock).status()),
            "DATA_LOSS: sample of 0 ns: expected more than 0");
}

TEST(ProfileGroup, SaysWhyNoKernelCouldBeBuilt) {
  FakeDevice device;
  FakeClock clock;
  device.kernels = {{"a", nullptr}, {"b", nullptr}};
  EXPECT_EQ(ToString(ProfileGroup(device, ReluProblem(), {}, clock).status()),
            "UNIMPLEMENTED: kernel a: fake: no a");
}

TEST(ProfileGroup, WarmsUpOncePerSessionAndAfterIdleTime) {
  FakeDevice device;
  FakeClock clock;
  device.kernels = {{"only", [] { return 1e6; }}};
  const auto canaries_of_one = [&] {
    device.canaries = 0;
    EXPECT_TRUE(ProfileGroup(device, ReluProblem(), {}, clock).ok());
    return device.canaries;
  };
  EXPECT_GT(canaries_of_one(), 2000);  // 200 ms of 100 us.
  EXPECT_LT(canaries_of_one(), 100);
  clock.Advance(std::chrono::seconds(2));
  EXPECT_GT(canaries_of_one(), 2000);
}

GroupProblem ColdProblem() {
  GroupProblem problem = ReluProblem();
  problem.cold_cache = true;
  return problem;
}

// Each sample is a run from evicted caches. Short runs are not repeated within a sample; there are
// more samples instead. Evictions count in the budget.
TEST(ProfileGroup, AColdProblemIsTimedFromEvictedCaches) {
  const struct {
    const char* name;
    double run_ns;
    Nanos eviction;
    int samples;
  } kCases[] = {
      {"short runs", 1e3, Nanos{10'000}, 15},
      {"longer runs", 1e6, Nanos{10'000}, 15},
      {"evictions of 30 ms", 1e6, Nanos{30'000'000}, 7},
      {"short runs, evictions of 30 ms", 1e3, Nanos{30'000'000}, 15},
  };
  for (const auto& c : kCases) {
    FakeDevice device;
    FakeClock clock;
    FakeDevice::Evictions evictions{clock, c.eviction};
    device.evictions = &evictions;
    device.CoolCaches();
    int runs = 0;  // Never settles, so that the budget ends it.
    device.kernels = {{"only", [&] { return ++runs % 2 == 0 ? c.run_ns : 1.2 * c.run_ns; }}};
    const auto measured =
        ProfileGroup(device, ColdProblem(), {.samples_min = 7, .samples_max = 15}, clock);
    ASSERT_EQ(ToString(measured.status()), "OK") << c.name;
    EXPECT_EQ(measured->samples, c.samples) << c.name;
    EXPECT_EQ(evictions.count, measured->samples) << c.name;
    EXPECT_EQ(runs, measured->samples + 3) << c.name;
    EXPECT_EQ(device.coolings, 0) << c.name;
  }
}

TEST(ProfileGroup, ADeviceThatCannotEvictSaysSo) {
  FakeDevice device;
  FakeClock clock;
  device.kernels = {{"only", [] { return 1e6; }}};
  EXPECT_EQ(ToString(ProfileGroup(device, ColdProblem(), {}, clock).status()),
            "UNIMPLEMENTED: fake: cannot evict");
}

TEST(ProfilePlans, ColdPlansAreTimedFromEvictedCaches) {
  FakeDevice device;
  FakeClock clock;
  FakeDevice::Evictions evictions{clock, Nanos{1'000'000}};
  std::vector<FakeDevice::FakeExecutable> executables{
      FakeDevice::FakeExecutable([] { return 3e5; }, &evictions),
      FakeDevice::FakeExecutable([] { return 2e5; }, &evictions)};
  const ProfileOptions cold{.cold_cache = true};
  const auto timings = ProfilePlans(device, PlansOf(executables), cold, clock);
  ASSERT_EQ(ToString(timings.status()), "OK");
  EXPECT_EQ((*timings)[1].verdict, Verdict::kFaster);
  EXPECT_EQ((*timings)[1].speedup, 1.5);
  EXPECT_EQ((*timings)[1].blocks, 9);
  // Three before, then four places of five in each of nine blocks.
  EXPECT_EQ(evictions.count, 2 * 3 + 9 * 4 * 5);
  EXPECT_EQ(executables[0].runs + executables[1].runs, evictions.count);
}

// Evictions of 200 ms: one run a place, and only as many blocks as fit into comparison_time.
TEST(ProfilePlans, EvictionsAreOnTheFinalComparisonsBudget) {
  FakeDevice device;
  FakeClock clock;
  FakeDevice::Evictions evictions{clock, Nanos{200'000'000}};
  Random random(5);
  const auto noisy = [&] { return 3e5 * std::exp(0.5 * random.Normal()); };
  std::vector<FakeDevice::FakeExecutable> executables(
      2, FakeDevice::FakeExecutable(noisy, &evictions));
  const ProfileOptions cold{.comparison_time = Nanos{10'000'000'000}, .cold_cache = true};
  const auto timings = ProfilePlans(device, PlansOf(executables), cold, clock);
  ASSERT_EQ(ToString(timings.status()), "OK");
  EXPECT_EQ((*timings)[1].blocks, 11);  // 6 runs before and 4 a block are 50 of 200 ms.
  EXPECT_EQ(evictions.count, 6 + 4 * 11);
}

TEST(ProfilePlans, AnInputThatCannotBeEvictedEndsIt) {
  FakeDevice device;
  FakeClock clock;
  std::vector<FakeDevice::FakeExecutable> executables(
      2, FakeDevice::FakeExecutable([] { return 3e6; }));
  EXPECT_EQ(
      ToString(ProfilePlans(device, PlansOf(executables), {.cold_cache = true}, clock).status()),
      "UNIMPLEMENTED: fake: cannot evict");
}

TEST(MeasureAlone, WaitsForWhoSearchesAndSaysSo) {
  const TempDir folder = *TempDir::Make("measure-alone");
  ::setenv("AUTOGRAPH_MEASURING_LOCK", (folder.path() + "/lock").c_str(), 1);
  FakeDevice device;
  SearchTurn search;
  ASSERT_TRUE(search.Enter().ok());
  std::vector<pid_t> holders;
  const auto alone = MeasureAlone(device, [&](pid_t holder) {
    holders.push_back(holder);
    search.Leave();
  });
  EXPECT_TRUE(alone.ok() && alone->has_value());
  EXPECT_EQ(holders, (std::vector<pid_t>{::getpid(), 0}));
  SearchTurn another;
  EXPECT_FALSE(*another.TryEnter());
  ::unsetenv("AUTOGRAPH_MEASURING_LOCK");
}

TEST(MeasureAlone, GivesUpWhenItsTimeIsUpAndLeavesNoLock) {
  const TempDir folder = *TempDir::Make("measure-alone");
  ::setenv("AUTOGRAPH_MEASURING_LOCK", (folder.path() + "/lock").c_str(), 1);
  FakeDevice device;
  SearchTurn search;
  ASSERT_TRUE(search.Enter().ok());
  const Nanos until = RealClock().Now() + Nanos{20'000'000};
  EXPECT_EQ(ToString(MeasureAlone(device, nullptr, until).status()),
            "CANCELLED: not measured: others measured on this host until now");
  search.Leave();
  EXPECT_TRUE(search.Enter().ok());  // The lock that came too late was released.
  ::unsetenv("AUTOGRAPH_MEASURING_LOCK");
}

}  // namespace
}  // namespace ag
