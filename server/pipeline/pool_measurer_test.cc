#include "server/pipeline/pool_measurer.h"

#include <gtest/gtest.h>

#include <set>

#include "base/digest_count.h"
#include "base/file.h"
#include "plan/format/plan_codec.h"
#include "plan/testing/testing.h"
#include "server/store/open_store.h"
#include "wire/measurement_wire.h"

namespace ag {
namespace {

// Answers every group with a time made from its number, and records what was asked.
class FakeRunner : public WorkRunner {
 public:
  Status Run(ItemRequest request, const std::function<void(const Delivery&)>& on_result,
             const std::function<bool()>& cancelled) override {
    items.push_back(request);
    if (request.on_wait) request.on_wait("nothing");
    const int entries = EntryCount(*request.work);
    for (int entry = 0; entry < entries; ++entry) {
      if (cancelled && cancelled()) return Err(StatusCode::kCancelled, "cancelled");
      Delivery delivery;
      delivery.entry = entry;
      delivery.quarantined = quarantine;
      delivery.result.status = failure;
      if (request.work->has_kernel_check()) {
        for (const std::string& kernel : request.work->kernel_check().groups(entry).kernels()) {
          if (!kernels_of_device.contains(kernel)) {
            delivery.result.status = Err(StatusCode::kNotFound, "no kernel {}", kernel);
          }
        }
      }
      if (entry >= cut_at) delivery.result.status = Err(StatusCode::kCancelled, "time is up");
      const double ns = 100 + entry;
      delivery.result.measurement.latency = {ns, ns, ns};
      delivery.result.measurement.kernel = "k";
      delivery.result.measurement.canary_ns = canary_ns;
      delivery.result.measurement.simulated = simulated;
      delivery.result.measurement.samples = 10;
      delivery.result.measurement.disturbed = entry < disturbed ? 6 : 5;
      delivery.result.timing.latency = {ns, ns, ns};
      delivery.result.timing.blocks = 10;
      delivery.result.timing.disturbed = disturbed;
      delivery.result.measurement.alternatives = alternatives;
      delivery.result.kernels = kernels;
      delivery.result.shown = shown;
      on_result(delivery);
    }
    return OkStatus();
  }
  std::vector<ItemRequest> items;
  Status failure;
  bool quarantine = false;
  std::set<std::string> kernels_of_device = {"k"};
  int cut_at = 1000;  // The first entry for which there is no time.
  double canary_ns = 0;
  bool simulated = false;
  int disturbed = 0;  // Groups, and blocks of each plan, measured beside others.
  std::vector<std::pair<std::string, double>> alternatives;  // Of every group.
  std::vector<KernelChoice> kernels;                         // Of every refinement.
  std::optional<v1::ShownValues> shown;                      // Of every Show.
};

struct MeasurerBench {
  TempDir dir = *TempDir::Make("pool-measurer-test-");
  FakeClock clock;
  const Store store = *OpenStore({.folder = dir.path()}, clock);
  CacheStore* const cache = store.cache.get();
  FakeRunner runner;
  PoolMeasurer::Options options;
  MeasurerBench() {
    options.device = "cpu";
    options.environment = "e";
  }
  PoolMeasurer Make() { return PoolMeasurer(runner, *cache, clock, options); }
};

TEST(PoolMeasurer, AsksTheCacheFirst) {
  MeasurerBench b;
  {
    PoolMeasurer measurer = b.Make();
    const auto results = measurer.MeasureGroups({ReluProblem(1), ReluProblem(2), ReluProblem(1)});
    ASSERT_EQ(results.size(), 3u);
    EXPECT_EQ(results[0]->latency.median_ns, results[2]->latency.median_ns);
    EXPECT_EQ(measurer.misses(), 2) << "equal problems are measured once";
  }
  PoolMeasurer measurer = b.Make();
  EXPECT_EQ(measurer.MeasureGroups({ReluProblem(1), ReluProblem(2)})[1]->latency.median_ns, 101);
  measurer.MeasureGroups({ReluProblem(2)});
  EXPECT_EQ(measurer.hits(), 2) << "what the job has is not taken from the cache again";
  EXPECT_EQ(b.runner.items.size(), 1u);
  EXPECT_EQ(b.cache->Stats()->hits, 2);
  EXPECT_EQ(b.cache->Stats()->misses, 2);
}

// A row that came by an import is a hit when a worker has said that the device has its kernels.
TEST(PoolMeasurer, AnUnknownKernelIsAMiss) {
  MeasurerBench b;
  std::vector<CacheRow> rows(3);
  const char* const kernels[] = {"k", "no-such-kernel", "k"};
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].problem = EncodeGroupProblem(ReluProblem(static_cast<int64_t>(i) + 1));
    rows[i].environment = "e";
    rows[i].measurement.latency = {7, 7, 7};
    rows[i].measurement.kernel = kernels[i];
  }
  rows[2].measurement.alternatives = {{"no-such-rival", 8}};
  ASSERT_EQ(b.cache->Import(rows, "somebody")->added, 3);
  const std::vector<GroupProblem> problems = {ReluProblem(1), ReluProblem(2), ReluProblem(3)};
  {
    PoolMeasurer measurer = b.Make();
    EXPECT_FALSE(measurer.Remembered(ReluProblem(2)).has_value());
    const auto results = measurer.MeasureGroups(problems);
    EXPECT_EQ(results[0]->latency.median_ns, 7);
    for (const size_t i : {1, 2}) {
      EXPECT_GE(results[i]->latency.median_ns, 100) << "it was not measured here";
      EXPECT_EQ(results[i]->kernel, "k");
    }
    EXPECT_EQ(measurer.hits(), 1);
    EXPECT_EQ(measurer.misses(), 2);
    EXPECT_EQ(b.runner.items.size(), 2u);
  }
  b.Make().MeasureGroups(problems);
  EXPECT_EQ(b.runner.items.size(), 2u) << "what was checked or measured is a hit";
}

// Two groups were measured beside a canary of 100 ns. A job that measures a third one learns what
// the canary takes now.
class CanaryTest : public ::testing::Test {
 protected:
  CanaryTest() {
    b_.runner.canary_ns = 100;
    b_.runner.alternatives = {{"slower", 200}};
    b_.Make().MeasureGroups({ReluProblem(1), ReluProblem(2)});
    b_.runner.items.clear();
  }
  // Asks for a group that is not remembered and one that is: the one of 101 ns.
  StatusOr<Measurement> Ask(PoolMeasurer& measurer) {
    return measurer.MeasureGroups({ReluProblem(3), ReluProblem(2)})[1];
  }
  MeasurerBench b_;
};

TEST_F(CanaryTest, ARememberedTimeIsScaledToNow) {
  b_.runner.canary_ns = 108;
  PoolMeasurer measurer = b_.Make();
  const auto scaled = Ask(measurer);
  ASSERT_TRUE(scaled.ok());
  EXPECT_DOUBLE_EQ(scaled->latency.median_ns, 101 * 1.08);
  EXPECT_DOUBLE_EQ(scaled->latency.low_ns, 101 * 1.08);
  EXPECT_DOUBLE_EQ(scaled->latency.high_ns, 101 * 1.08);
  EXPECT_DOUBLE_EQ(scaled->canary_ns, 108);
  ASSERT_EQ(scaled->alternatives.size(), 1u);
  EXPECT_DOUBLE_EQ(scaled->alternatives[0].second, 200 * 1.08);
  EXPECT_EQ(measurer.hits(), 1);
  EXPECT_EQ(measurer.misses(), 1);
  // The report and the kernels' rivals read the same time, and what is stored stays.
  EXPECT_DOUBLE_EQ(measurer.Remembered(ReluProblem(2))->latency.median_ns, 101 * 1.08);
  EXPECT_DOUBLE_EQ(b_.Make().Remembered(ReluProblem(2))->latency.median_ns, 101);
}

TEST_F(CanaryTest, WhatACanaryMovedFarFromIsMeasuredAgain) {
  b_.runner.canary_ns = 112;
  PoolMeasurer measurer = b_.Make();
  const auto now = Ask(measurer);
  ASSERT_TRUE(now.ok());
  EXPECT_EQ(now->latency.median_ns, 100) << "it is the first of its batch";
  EXPECT_EQ(now->canary_ns, 112);
  EXPECT_EQ(measurer.hits(), 0);
  EXPECT_EQ(measurer.misses(), 2);
  EXPECT_EQ(b_.Make().Remembered(ReluProblem(2))->latency.median_ns, 100);
  b_.runner.canary_ns = 98;  // 112 is 14 % above it.
  PoolMeasurer faster = b_.Make();
  faster.MeasureGroups({ReluProblem(4), ReluProblem(2)});
  EXPECT_EQ(faster.hits(), 0);
  EXPECT_EQ(faster.misses(), 2);
}

// Nothing says what the canary takes now: the times fit each other, and nothing is measured.
TEST_F(CanaryTest, WithoutAMeasurementTimesStayAsTheyAre) {
  b_.runner.canary_ns = 200;
  PoolMeasurer measurer = b_.Make();
  const auto results = measurer.MeasureGroups({ReluProblem(1), ReluProblem(2)});
  EXPECT_EQ(results[1]->latency.median_ns, 101);
  EXPECT_EQ(measurer.hits(), 2);
  EXPECT_TRUE(b_.runner.items.empty());
}

// Where no time is left to measure again, the scaled time is the best there is.
TEST_F(CanaryTest, WithoutTimeTheScaledTimeIsTaken) {
  b_.runner.canary_ns = 150;
  PoolMeasurer measurer = b_.Make();
  measurer.MeasureGroups({ReluProblem(3)});
  measurer.EndBy(b_.clock.Now());
  EXPECT_DOUBLE_EQ(measurer.MeasureGroups({ReluProblem(2)})[0]->latency.median_ns, 101 * 1.5);
}

TEST_F(CanaryTest, SimulatedTimesAreNotScaled) {
  b_.runner.simulated = true;
  PoolMeasurer::Options fresh = b_.options;
  fresh.skip_group_cache = true;
  PoolMeasurer(b_.runner, *b_.cache, b_.clock, fresh)
      .MeasureGroups({ReluProblem(1), ReluProblem(2)});
  b_.runner.canary_ns = 150;
  PoolMeasurer measurer = b_.Make();
  EXPECT_EQ(Ask(measurer)->latency.median_ns, 101);
  EXPECT_EQ(measurer.hits(), 1);
}

// A read of a row computes one digest, its seal; the key is the other one.
TEST(PoolMeasurer, AHitIsOneReadWithTwoDigests) {
  MeasurerBench b;
  b.Make().MeasureGroups({ReluProblem(1), ReluProblem(2)});
  PoolMeasurer measurer = b.Make();
  const uint64_t before = DigestsComputed();
  measurer.MeasureGroups({ReluProblem(1), ReluProblem(2), ReluProblem(1)});
  EXPECT_EQ(measurer.hits(), 2);
  EXPECT_EQ(DigestsComputed() - before, 4u);
}

TEST(PoolMeasurer, SkippingTheCacheMeasuresOncePerJob) {
  MeasurerBench b;
  b.Make().MeasureGroups({ReluProblem(1)});
  b.options.skip_group_cache = true;
  PoolMeasurer measurer = b.Make();
  measurer.MeasureGroups({ReluProblem(1)});
  measurer.MeasureGroups({ReluProblem(1)});
  EXPECT_EQ(b.runner.items.size(), 2u);
  EXPECT_EQ(measurer.misses(), 1);
}

TEST(PoolMeasurer, SplitsIntoBatches) {
  MeasurerBench b;
  std::vector<GroupProblem> problems;
  for (int i = 1; i <= 300; ++i) problems.push_back(ReluProblem(i));
  b.Make().MeasureGroups(problems);
  ASSERT_EQ(b.runner.items.size(), 2u);
  EXPECT_EQ(EntryCount(*b.runner.items[0].work), 256);
}

TEST(PoolMeasurer, PairsAreRememberedLikeGroups) {
  MeasurerBench b;
  const PairProblem pair = MakePair({{ReluProblem(1), ReluProblem(2)}, {"k", "k"}});
  {
    PoolMeasurer measurer = b.Make();
    EXPECT_EQ(measurer.MeasurePairs({pair, pair})[1]->latency.median_ns, 100);
    EXPECT_EQ(measurer.misses(), 1);
  }
  const auto& work = b.runner.items.at(0).work->groups();
  ASSERT_EQ(work.problems_size(), 1);
  EXPECT_EQ(work.problems(0), EncodePairProblem(pair));
  PoolMeasurer measurer = b.Make();
  EXPECT_TRUE(measurer.MeasurePairs({pair})[0].ok());
  EXPECT_EQ(measurer.hits(), 1);
  EXPECT_EQ(b.runner.items.size(), 1u);
  EXPECT_EQ(b.cache->List({})->at(0).record.summary,
            "chain: Relu f32[1] beside chain: Relu f32[2]");
}

TEST(PoolMeasurer, QuarantineIsRemembered) {
  MeasurerBench b;
  b.runner.failure = Err(StatusCode::kInternal, "quarantined after 2 crashed executors");
  b.runner.quarantine = true;
  EXPECT_FALSE(b.Make().MeasureGroups({ReluProblem(1)})[0].ok());
  EXPECT_EQ(b.cache->Stats()->failures, 1);
  PoolMeasurer measurer = b.Make();
  EXPECT_EQ(Message(measurer.MeasureGroups({ReluProblem(1)})[0].status()),
            "quarantined after 2 crashed executors");
  EXPECT_EQ(b.runner.items.size(), 1u);
}

TEST(PoolMeasurer, ALostWorkerIsNotTheGroupsFault) {
  MeasurerBench b;
  b.runner.failure = Err(StatusCode::kUnavailable, "lost 3 workers");
  EXPECT_FALSE(b.Make().MeasureGroups({ReluProblem(1)})[0].ok());
  EXPECT_EQ(b.cache->Stats()->failures, 0);
}

TEST(PoolMeasurer, CancelledGroupsAreCancelled) {
  MeasurerBench b;
  b.options.cancelled = [] { return true; };
  EXPECT_EQ(b.Make().MeasureGroups({ReluProblem(1)})[0].status().code(), StatusCode::kCancelled);
}

// The search withdraws a round when it is cancelled, but not its final comparison, begun or not.
TEST(PoolMeasurer, ACancelledJobMeasuresItsFinalComparison) {
  MeasurerBench b;
  b.options.cancelled = [] { return true; };
  PoolMeasurer measurer = b.Make();
  EXPECT_EQ(measurer.MeasurePlans({{}, {}}, Measurer::Effort::kRanking).status().code(),
            StatusCode::kCancelled);
  EXPECT_TRUE(measurer.MeasurePlans({{}, {}}, Measurer::Effort::kVerdict).ok());
  b.options.stopping = [] { return true; };
  EXPECT_EQ(b.Make().MeasurePlans({{}, {}}, Measurer::Effort::kVerdict).status().code(),
            StatusCode::kCancelled);
}

TEST(PoolMeasurer, WorkersAreToldWhenToEnd) {
  MeasurerBench b;
  PoolMeasurer measurer = b.Make();
  measurer.MeasureGroups({ReluProblem(1)});
  EXPECT_EQ(b.runner.items.back().work->end_within_seconds(), 0);
  measurer.EndBy(b.clock.Now() + Nanos{2'500'000'000});
  b.runner.cut_at = 1;
  const auto groups = measurer.MeasureGroups({ReluProblem(2), ReluProblem(3)});
  EXPECT_DOUBLE_EQ(b.runner.items.back().work->end_within_seconds(), 2.5);
  EXPECT_TRUE(groups[0].ok());
  EXPECT_EQ(groups[1].status().code(), StatusCode::kCancelled);
  EXPECT_EQ(b.cache->Stats()->failures, 0);
  EXPECT_EQ(measurer.failed(), 0);
  b.clock.Advance(Nanos{2'500'000'000});
  const size_t items = b.runner.items.size();
  EXPECT_EQ(measurer.MeasureGroups({ReluProblem(3)})[0].status().code(), StatusCode::kCancelled);
  EXPECT_EQ(b.runner.items.size(), items) << "nothing is asked when no time is left";
  EXPECT_TRUE(measurer.MeasurePlans({{}}, Measurer::Effort::kVerdict).ok());
  EXPECT_DOUBLE_EQ(b.runner.items.back().work->end_within_seconds(), 1e-3);
}

// A worker that does not come back is stopped.
TEST(PoolMeasurer, AWorkerThatDoesNotHeedTheEndIsStopped) {
  class Hanging : public WorkRunner {
   public:
    explicit Hanging(FakeClock& clock) : clock_(clock) {}
    Status Run(ItemRequest, const std::function<void(const Delivery&)>&,
               const std::function<bool()>& cancelled) override {
      while (!cancelled()) clock_.Advance(Nanos{100'000'000});
      return Err(StatusCode::kCancelled, "cancelled");
    }

   private:
    FakeClock& clock_;
  };
  MeasurerBench b;
  Hanging hanging(b.clock);
  PoolMeasurer measurer(hanging, *b.cache, b.clock, b.options);
  measurer.EndBy(Nanos{1'000'000'000});
  EXPECT_EQ(measurer.MeasureGroups({ReluProblem(1)})[0].status().code(), StatusCode::kCancelled);
  EXPECT_LE(b.clock.Now(), Nanos{1'100'000'000} + PoolMeasurer::kGroupGrace);
}

TEST(PoolMeasurer, TellsWhatWasMeasuredBesideOthers) {
  MeasurerBench b;
  PoolMeasurer measurer = b.Make();
  EXPECT_FALSE(measurer.foreign_load().busy());
  b.runner.disturbed = 1;
  measurer.MeasureGroups(
      {ReluProblem(1), ReluProblem(2), ReluProblem(3), ReluProblem(4), ReluProblem(5)});
  ASSERT_TRUE(measurer.MeasurePlans({{}, {}}, Measurer::Effort::kVerdict).ok());
  EXPECT_EQ(measurer.foreign_load().groups_disturbed, 1);
  EXPECT_EQ(measurer.foreign_load().blocks, 10);
  EXPECT_FALSE(measurer.foreign_load().busy());
  EXPECT_EQ(measurer.foreign_load().Warning(), "");
  b.runner.disturbed = 4;
  ASSERT_TRUE(measurer.MeasurePlans({{}, {}, {}}, Measurer::Effort::kVerdict).ok());
  EXPECT_TRUE(measurer.foreign_load().busy());
  EXPECT_EQ(measurer.foreign_load().Warning(),
            "others used the processors while 1 of 5 groups and 9 of 30 blocks of plans and files "
            "were measured: times are less sure than on a quiet machine");
}

// The plan of one group, as timed alone by "k" in 100 ns.
struct Refined {
  GroupProblem problem = ReluProblem(1);
  Candidate candidate{problem.graph, SingleGroupPlan(problem)};
  explicit Refined(PoolMeasurer& measurer) {
    candidate.plan.groups[0].kernel = "k";
    measurer.MeasureGroups({ExtractGroup(problem.graph, candidate.plan.groups[0], {})});
  }
};

TEST(PoolMeasurer, CloseKernelsAreRefinedByAWorker) {
  MeasurerBench b;
  b.runner.alternatives = {{"far", 130}, {"close", 110}};
  PoolMeasurer measurer = b.Make();
  const Refined refined(measurer);
  // What the worker was not asked for is not taken.
  b.runner.kernels = {{0, "close"}, {0, "far"}, {7, "close"}};
  EXPECT_EQ(*measurer.RefinePlan(refined.candidate), (std::vector<KernelChoice>{{0, "close"}}));
  const v1::Refine& work = b.runner.items.back().work->refine();
  ASSERT_EQ(work.rivals_size(), 1);
  EXPECT_EQ(FromProto(work.rivals(0)), (KernelChoice{0, "close"}));
  EXPECT_EQ(work.candidate().plan(), EncodePlan(refined.candidate.plan));
  b.runner.failure = Err(StatusCode::kUnimplemented, "an older worker");
  EXPECT_EQ(ToString(measurer.RefinePlan(refined.candidate).status()),
            "UNIMPLEMENTED: an older worker");
  b.options.cancelled = [] { return true; };
  EXPECT_EQ(b.Make().RefinePlan(refined.candidate).status().code(), StatusCode::kCancelled);
}

TEST(PoolMeasurer, WithoutCloseKernelsNobodyIsAsked) {
  MeasurerBench b;
  b.runner.alternatives = {{"far", 130}};
  PoolMeasurer measurer = b.Make();
  const Refined refined(measurer);
  EXPECT_EQ(*measurer.RefinePlan(refined.candidate), std::vector<KernelChoice>());
  EXPECT_EQ(b.runner.items.size(), 1u) << "the groups";
}

TEST(PoolMeasurer, ColdTimesAreOtherRows) {
  MeasurerBench b;
  b.Make().MeasureGroups({ReluProblem(1)});
  GroupProblem problem = ReluProblem(1);
  problem.cold_cache = true;
  b.options.policy.cold_cache = true;
  PoolMeasurer cold = b.Make();
  cold.MeasureGroups({problem});
  EXPECT_EQ(cold.misses(), 1);
  EXPECT_EQ(cold.MeasurePlans({{}, {}}, Measurer::Effort::kVerdict).status(), OkStatus());
  EXPECT_EQ(b.runner.items.back().work->plans().policy(),
            "precision=fp32;tolerance=0.001;cold_cache=1;nonfinite_strict=0");
  PoolMeasurer again = b.Make();
  again.MeasureGroups({problem});
  EXPECT_EQ(again.hits(), 1);
  EXPECT_EQ(b.cache->Stats()->environments,
            (std::vector<std::pair<Environment, int64_t>>{{"e", 2}}));
}

TEST(PoolMeasurer, ADifferenceIsShown) {
  MeasurerBench b;
  b.options.policy.tolerance = 0.25;
  PoolMeasurer measurer = b.Make();
  v1::Check check;
  check.add_seeds(5);
  EXPECT_FALSE(measurer.Show(check, {"y"}, 100)->has_value());
  const v1::WorkItem& item = *b.runner.items.back().work;
  EXPECT_EQ(item.show().bytes_max(), 100);
  EXPECT_EQ(item.show().check().seeds(0), 5u);
  EXPECT_EQ(item.show().check().tolerance(), 0.25);
  EXPECT_GT(item.time_max_seconds(), 0);
  b.runner.shown.emplace().set_seed(5);
  EXPECT_EQ((*measurer.Show(check, {"y"}, 100))->seed(), 5u);
  b.runner.failure = Err(StatusCode::kUnimplemented, "of a kind");
  EXPECT_EQ(ToString(measurer.Show(check, {"y"}, 100).status()), "UNIMPLEMENTED: of a kind");
}

TEST(PoolMeasurer, PlansKeepTheirOrder) {
  MeasurerBench b;
  PoolMeasurer measurer = b.Make();
  const auto timings = measurer.MeasurePlans({{}, {}}, Measurer::Effort::kVerdict);
  ASSERT_TRUE(timings.ok()) << timings.status();
  EXPECT_EQ((*timings)[1].latency.median_ns, 101);
}

}  // namespace
}  // namespace ag
