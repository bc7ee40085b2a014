#include "server/pipeline/sentinel.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "plan/fusion/group_problem.h"
#include "plan/testing/testing.h"
#include "server/store/open_store.h"

namespace ag {
namespace {

constexpr double kStoredNs = 100;

Measurement Timed(double ns, double canary_ns = 10) {
  Measurement measurement;
  measurement.latency = {ns, ns * 0.98, ns * 1.02};
  measurement.samples = 10;
  measurement.canary_ns = canary_ns;
  measurement.kernel = "k";
  return measurement;
}

TEST(Sentinel, DriftIsBeyondTheFactorAndBesideTheCanary) {
  const struct {
    const char* name;
    Measurement stored, now;
    bool has_drifted;
  } kCases[] = {
      {"the same", Timed(100), Timed(100), false},
      {"within the factor", Timed(100), Timed(120), false},
      {"slower", Timed(100), Timed(140), true},
      {"faster", Timed(100), Timed(60), true},
      {"all is slower, the canary too", Timed(100, 10), Timed(140, 14), false},
      {"as fast on a processor that is slower now", Timed(100, 10), Timed(100, 14), true},
      {"no canary", Timed(100, 0), Timed(140, 14), true},
  };
  for (const auto& c : kCases)
    EXPECT_EQ(HasDrifted(c.stored, c.now, 1.25), c.has_drifted) << c.name;
}

// Gives each group the next of `times`, the last one again and again.
class Runner : public WorkRunner {
 public:
  Status Run(ItemRequest request, const std::function<void(const Delivery&)>& on_result,
             const std::function<bool()>& cancelled) override {
    EXPECT_EQ(request.environment, "e");
    if (on_run) on_run();
    for (int entry = 0; entry < EntryCount(*request.work); ++entry) {
      if (cancelled()) return Err(StatusCode::kCancelled, "cancelled");
      ++measured;
      Delivery delivery;
      delivery.entry = entry;
      delivery.worker_id = "now";
      delivery.result.measurement = Timed(times.front());
      delivery.result.measurement.disturbed = disturbed;
      on_result(delivery);
    }
    if (times.size() > 1) times.erase(times.begin());
    return OkStatus();
  }
  std::vector<double> times = {kStoredNs};  // By item.
  int disturbed = 0;
  int measured = 0;
  std::function<void()> on_run;
};

struct SentinelBench {
  explicit SentinelBench(int rows, const std::string& worker = "before") {
    for (int i = 0; i < rows; ++i) {
      CacheRow row;
      row.problem = EncodeGroupProblem(ReluProblem(i + 1));
      row.environment = "e";
      row.measurement = Timed(kStoredNs);
      row.worker = worker;
      EXPECT_TRUE(cache->Put(row).ok());
    }
    sentinel.emplace(
        Sentinel::Parts{
            runner, *cache, clock,
            [] { return std::vector<DeviceOffer>{{.device = "cpu", .environment = "e"}}; },
            [this] { return has_jobs; }},
        SentinelOptions{.pause = std::chrono::minutes(10), .sample = 64});
  }
  // Lets time pass, looking each second as the thread does.
  void Pass(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      clock.Advance(std::chrono::seconds(1));
      sentinel->Tick();
    }
  }
  std::vector<CacheStore::Listed> Stored(const Environment& environment = "e") {
    return cache->List({.environment = environment, .rows_max = 100}).value();
  }
  std::vector<double> StoredTimes() {
    std::vector<double> times;
    for (const auto& listed : Stored()) {
      times.push_back(listed.record.measurement.latency.median_ns);
    }
    return times;
  }

  TempDir dir = *TempDir::Make("sentinel-test-");
  FakeClock clock;
  const Store store = *OpenStore({.folder = dir.path()}, clock);
  CacheStore* const cache = store.cache.get();
  Runner runner;
  bool has_jobs = false;
  std::optional<Sentinel> sentinel;
};

TEST(Sentinel, WhatHoldsStaysAsItWas) {
  SentinelBench b(8);
  b.Pass(700);
  EXPECT_GT(b.sentinel->counts().held, 3);
  EXPECT_EQ(b.sentinel->counts().held, b.runner.measured) << "each once";
  EXPECT_EQ(b.sentinel->counts().drifted, 0);
  for (const auto& listed : b.Stored()) EXPECT_EQ(listed.record.worker, "before");
}

TEST(Sentinel, MeasuresOnlyWhileThereIsNoJob) {
  SentinelBench b(8);
  b.has_jobs = true;
  b.Pass(2000);
  b.has_jobs = false;
  b.Pass(59);
  EXPECT_EQ(b.runner.measured, 0) << "a job may follow";
  b.Pass(602);
  const int once = b.runner.measured;
  EXPECT_GT(once, 0);
  b.Pass(590);
  EXPECT_EQ(b.runner.measured, once) << "the pause is not over";
  b.Pass(20);
  EXPECT_GT(b.runner.measured, once);
}

// A job that comes meanwhile has the worker at once, and what was measured so far is no proof.
TEST(Sentinel, AJobEndsASample) {
  SentinelBench b(8);
  b.runner.times = {2 * kStoredNs};
  b.runner.on_run = [&b] { b.has_jobs = true; };
  b.Pass(700);
  EXPECT_EQ(b.runner.measured, 0);
  EXPECT_EQ(b.sentinel->counts().drifted, 0);
}

TEST(Sentinel, OneSlowMomentIsNoDrift) {
  SentinelBench b(8);
  b.runner.times = {2 * kStoredNs, kStoredNs};
  b.Pass(662);
  EXPECT_EQ(b.sentinel->counts().drifted, 0);
  EXPECT_GT(b.runner.measured, b.sentinel->counts().held) << "it looked twice";
}

TEST(Sentinel, WhatIsDisturbedSaysNothing) {
  SentinelBench b(8);
  b.runner.times = {2 * kStoredNs};
  b.runner.disturbed = 6;
  b.Pass(662);
  EXPECT_GT(b.runner.measured, 0);
  EXPECT_EQ(b.sentinel->counts().held, 0);
  EXPECT_EQ(b.sentinel->counts().drifted, 0);
}

TEST(Sentinel, AFewDriftedRowsAreReplaced) {
  SentinelBench b(2);
  b.runner.times = {2 * kStoredNs};
  b.Pass(662);
  EXPECT_EQ(b.sentinel->counts().drifted, 2);
  EXPECT_EQ(b.StoredTimes(), (std::vector<double>{2 * kStoredNs, 2 * kStoredNs}));
  EXPECT_EQ(b.Stored().front().record.worker, "now");
}

// A worker whose times are wrong as a whole: what it gave goes, with the answers that rest on it,
// and what others gave stays.
TEST(Sentinel, AWorkerWhoseTimesDoNotHoldIsForgotten) {
  SentinelBench b(20);
  CacheRow other;
  other.problem = EncodeGroupProblem(ReluProblem(100));
  other.environment = "elsewhere";
  other.measurement = Timed(kStoredNs);
  other.worker = "before";
  ASSERT_TRUE(b.cache->Put(other).ok());
  ASSERT_TRUE(
      b.cache->PutModel({.key_text = "key", .result = "r", .of = {.environment = "e"}}).ok());
  b.runner.times = {2 * kStoredNs};
  b.Pass(662);
  EXPECT_EQ(static_cast<int64_t>(b.Stored().size()), b.sentinel->counts().drifted) << "and no more";
  EXPECT_GT(b.sentinel->counts().drifted, 3);
  for (const double ns : b.StoredTimes()) EXPECT_EQ(ns, 2 * kStoredNs);
  EXPECT_FALSE(b.cache->FindModel("key").has_value());
  EXPECT_EQ(b.Stored("elsewhere").size(), 1u);
}

}  // namespace
}  // namespace ag
