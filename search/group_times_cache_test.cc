#include "search/group_times_cache.h"

#include <gmock/gmock.h>

#include <cmath>

#include "search/fake_measurer.h"

namespace ag {
namespace {

using State = GroupTimesCache::State;

// Returns relu over n floats: one group of the pattern "one".
GroupProblem Relu(int64_t n) {
  return {.graph = TestGraph(fmt::format("input i0 f32[{}]\noutput \"o0\" = relu(i0)\n", n)),
          .pattern = "one",
          .input_layouts = {Layout::kPlain},
          .output_layouts = {Layout::kPlain}};
}

class GroupTimesCacheTest : public testing::Test {
 protected:
  GroupTimesCache Cache(int groups_max = 1000) {
    return GroupTimesCache(spec_, measurer_, {.groups_max = groups_max});
  }
  double Roofline(int64_t n) { return RooflineNs(Relu(n), spec_); }

  DeviceSpec spec_ = TestSpec();
  FakeMeasurer measurer_{spec_};
};

TEST_F(GroupTimesCacheTest, AnUnknownGroupHasItsRooflineAndIsNotMeasured) {
  GroupTimesCache cache = Cache();
  const GroupTime time = cache.Time(Relu(1000));
  EXPECT_EQ(time.ns, Roofline(1000));
  EXPECT_FALSE(time.measured);
  cache.MeasureWanted();
  EXPECT_TRUE(measurer_.group_calls.empty());
}

TEST_F(GroupTimesCacheTest, AWantedGroupIsMeasuredOnce) {
  GroupTimesCache cache = Cache();
  cache.Want(Relu(1000));
  cache.Want(Relu(1000));
  cache.MeasureWanted();
  cache.Want(Relu(1000));
  cache.MeasureWanted();
  ASSERT_EQ(measurer_.group_calls.size(), 1u);
  EXPECT_EQ(measurer_.group_calls[0].size(), 1u);
  const GroupTime time = cache.Time(Relu(1000));
  EXPECT_EQ(time.ns, measurer_.HashedNs(Relu(1000)));
  EXPECT_TRUE(time.measured);
  EXPECT_EQ(time.kernel, "fake");
  EXPECT_EQ(cache.measured(), 1);
}

TEST_F(GroupTimesCacheTest, APreferredKernelIsTakenFromThenOn) {
  GroupTimesCache cache = Cache();
  cache.Prefer(Relu(1000), "inside");  // Not measured, so it does nothing.
  cache.Want(Relu(1000));
  cache.MeasureWanted();
  const LocalKey key{1, 2};
  cache.Remember(key, cache.Time(Relu(1000)));
  EXPECT_EQ(cache.Recall(key)->kernel, "fake");
  cache.Prefer(Relu(1000), "inside");
  EXPECT_EQ(cache.Time(Relu(1000)).kernel, "inside");
  EXPECT_EQ(cache.Time(Relu(1000)).ns, measurer_.HashedNs(Relu(1000)));
  EXPECT_EQ(cache.Recall(key), std::nullopt);
}

TEST_F(GroupTimesCacheTest, AnEstimateIsScaledByTheMedianRatioOfItsKind) {
  measurer_.group_ns = [&](const GroupProblem& problem) {
    const bool is_large = problem.graph.type({problem.graph.inputs()[0], 0}).shape[0] > 2000;
    return RooflineNs(problem, spec_) * (is_large ? 9 : 3);
  };
  GroupTimesCache cache = Cache();
  for (const int64_t n : {1000, 2000, 3000}) cache.Want(Relu(n));
  cache.MeasureWanted();
  EXPECT_DOUBLE_EQ(cache.Time(Relu(4000)).ns, 3 * Roofline(4000));
  GroupProblem other = Relu(4000);  // No ratio of its pattern, so the ratio of all patterns.
  other.pattern = "other";
  EXPECT_DOUBLE_EQ(cache.Time(other).ns, 3 * RooflineNs(other, spec_));
}

TEST_F(GroupTimesCacheTest, AFailedGroupIsNeverAskedForAgain) {
  measurer_.group_failure = [](const GroupProblem&) {
    return Err(StatusCode::kUnavailable, "executor died");
  };
  GroupTimesCache cache = Cache();
  cache.Want(Relu(1000));
  cache.MeasureWanted();
  cache.Want(Relu(1000));
  cache.MeasureWanted();
  EXPECT_EQ(measurer_.group_calls.size(), 1u);
  const GroupTimesCache::Known known = cache.Find(Relu(1000));
  EXPECT_EQ(known.state, State::kFailed);
  EXPECT_EQ(Message(known.failure), "executor died");
  EXPECT_FALSE(known.time.measured);
  EXPECT_EQ(known.time.ns, kFailedGroupNs);
  EXPECT_EQ(cache.failed(), 1);
}

TEST_F(GroupTimesCacheTest, ATimeThatIsNoTimeIsAFailure) {
  for (const double bad : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    measurer_.group_ns = [bad](const GroupProblem&) { return bad; };
    GroupTimesCache cache = Cache();
    cache.Want(Relu(1000));
    cache.MeasureWanted();
    EXPECT_EQ(cache.Find(Relu(1000)).state, State::kFailed) << bad;
  }
}

TEST_F(GroupTimesCacheTest, BatchesAreBoundedAndTheLimitHolds) {
  GroupTimesCache cache = Cache(/*groups_max=*/300);
  for (int64_t n = 1; n <= 400; ++n) cache.Want(Relu(n));
  cache.MeasureWanted();
  ASSERT_EQ(measurer_.group_calls.size(), 2u);
  EXPECT_EQ(measurer_.group_calls[0].size(), 256u);
  EXPECT_EQ(measurer_.group_calls[1].size(), 44u);
  EXPECT_TRUE(cache.Exhausted());
  EXPECT_EQ(cache.Find(Relu(300)).state, State::kMeasured);
  EXPECT_EQ(cache.Find(Relu(301)).state, State::kUnknown);
}

TEST_F(GroupTimesCacheTest, ACallMayBeLimitedAndForgetsTheRest) {
  GroupTimesCache cache = Cache();
  for (int64_t n = 1; n <= 3; ++n) cache.Want(Relu(n));
  cache.MeasureWanted(2);
  EXPECT_EQ(cache.measured(), 2);
  EXPECT_FALSE(cache.Exhausted());
  cache.Want(Relu(3));
  cache.MeasureWanted();
  EXPECT_EQ(cache.measured(), 3);
}

TEST_F(GroupTimesCacheTest, StopEndsMeasuringForGood) {
  bool stop = true;
  GroupTimesCache cache(spec_, measurer_, {.groups_max = 10, .stop = [&stop] { return stop; }});
  cache.Want(Relu(1));
  cache.MeasureWanted();
  stop = false;
  cache.Want(Relu(1));
  cache.MeasureWanted();
  EXPECT_TRUE(cache.Exhausted());
  EXPECT_TRUE(measurer_.group_calls.empty());
}

TEST_F(GroupTimesCacheTest, ACancelledMeasurementSaysNothingOfTheGroup) {
  measurer_.group_failure = [](const GroupProblem&) {
    return Err(StatusCode::kCancelled, "job cancelled");
  };
  GroupTimesCache cache = Cache();
  cache.Want(Relu(1));
  cache.MeasureWanted();
  EXPECT_EQ(cache.Find(Relu(1)).state, State::kUnknown);
  EXPECT_EQ(cache.failed(), 0);
  EXPECT_TRUE(cache.Exhausted());
}

TEST_F(GroupTimesCacheTest, AStageMeasuresOnAfterOneThatWasCut) {
  bool is_cut = true;
  measurer_.group_failure = [&](const GroupProblem&) {
    return is_cut ? Err(StatusCode::kCancelled, "time is up") : OkStatus();
  };
  GroupTimesCache cache = Cache();
  cache.Want(Relu(1));
  cache.MeasureWanted();
  EXPECT_TRUE(cache.Exhausted());
  is_cut = false;
  cache.BeginStage();
  EXPECT_FALSE(cache.Exhausted());
  cache.Want(Relu(1));
  cache.MeasureWanted();
  EXPECT_EQ(cache.Find(Relu(1)).state, State::kMeasured);
  EXPECT_EQ(cache.asked(), 1);
}

TEST_F(GroupTimesCacheTest, AStageAsksForNoMoreThanItsShare) {
  GroupTimesCache cache = Cache();
  cache.BeginStage(2);
  for (int i = 1; i <= 3; ++i) cache.Want(Relu(i));
  cache.MeasureWanted();
  EXPECT_EQ(cache.measured(), 2);
  EXPECT_TRUE(cache.Exhausted());
  cache.BeginStage(1);
  for (int i = 1; i <= 5; ++i) cache.Want(Relu(i));
  cache.MeasureWanted();
  EXPECT_EQ(cache.measured(), 3);
}

TEST_F(GroupTimesCacheTest, AViewTakesNoTimeAndIsNeverMeasured) {
  GroupTimesCache cache = Cache();
  GroupProblem view = Relu(1);
  view.pattern = kViewPattern;
  cache.Want(view);
  cache.MeasureWanted();
  EXPECT_EQ(cache.Find(view).state, State::kMeasured);
  EXPECT_EQ(cache.Time(view).ns, 0);
  EXPECT_TRUE(measurer_.group_calls.empty());
}

TEST_F(GroupTimesCacheTest, WantingTimesWantsWhatIsUnknown) {
  GroupTimesCache cache = Cache();
  WantingTimes wanting(cache);
  EXPECT_FALSE(wanting.Time(Relu(1)).measured);
  cache.MeasureWanted();
  EXPECT_TRUE(wanting.Time(Relu(1)).measured);
  EXPECT_EQ(measurer_.group_calls.size(), 1u);
}

}  // namespace
}  // namespace ag
