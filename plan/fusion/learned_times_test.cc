#include "plan/fusion/learned_times.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plan/fusion/grouping.h"
#include "plan/testing/testing.h"

namespace ag {
namespace {

// Returns relu over n floats: one group of the pattern "chain".
GroupProblem Relu(int64_t n) {
  return {.graph = GraphOf(fmt::format("input i0 f32[{}]\noutput \"o0\" = relu(i0)\n", n)),
          .pattern = "chain",
          .input_layouts = {Layout::kPlain},
          .output_layouts = {Layout::kPlain}};
}

class LearnedTimesTest : public testing::Test {
 protected:
  LearnedTimes Times(int groups_max = 1000) {
    return LearnedTimes(spec_, Measure(), {.groups_max = groups_max});
  }
  // Measures twice the roofline, or what the test gives.
  GroupMeasurer Measure() {
    return [this](const std::vector<GroupProblem>& problems) {
      calls_.push_back(problems.size());
      std::vector<StatusOr<Measurement>> results;
      for (const GroupProblem& problem : problems) {
        const double ns = factor_(problem) * RooflineNs(problem, spec_);
        results.push_back(
            Measurement{.latency = {ns, ns, ns}, .kernel = "fake", .simulated = true});
        if (!failure_.ok()) results.back() = failure_;
      }
      return results;
    };
  }
  double Roofline(int64_t n) { return RooflineNs(Relu(n), spec_); }

  DeviceSpec spec_ = SmallSpec();
  std::function<double(const GroupProblem&)> factor_ = [](const GroupProblem&) { return 2; };
  Status failure_;
  std::vector<size_t> calls_;  // The number of groups of each.
};

TEST_F(LearnedTimesTest, AnUnknownGroupHasItsRooflineAndIsNotMeasured) {
  LearnedTimes times = Times();
  const GroupTime time = times.Time(Relu(1000));
  EXPECT_EQ(time.ns, Roofline(1000));
  EXPECT_FALSE(time.measured());
  times.MeasureWanted();
  EXPECT_TRUE(calls_.empty());
}

TEST_F(LearnedTimesTest, AWantedGroupIsMeasuredOnce) {
  LearnedTimes times = Times();
  times.Want(Relu(1000));
  times.Want(Relu(1000));
  times.MeasureWanted();
  times.Want(Relu(1000));
  times.MeasureWanted();
  ASSERT_EQ(calls_.size(), 1u);
  EXPECT_EQ(calls_[0], 1u);
  const GroupTime time = times.Time(Relu(1000));
  EXPECT_EQ(time.ns, 2 * Roofline(1000));
  EXPECT_TRUE(time.measured());
  EXPECT_EQ(time.kernel, "fake");
  EXPECT_EQ(times.measured(), 1);
}

TEST_F(LearnedTimesTest, APreferredKernelIsTakenFromThenOn) {
  LearnedTimes times = Times();
  times.Prefer(Relu(1000), "inside");  // Not measured, so it does nothing.
  times.Want(Relu(1000));
  times.MeasureWanted();
  const LocalKey key{1, 2};
  const auto of_key = [&] { return times.TimeOf(key, [] { return Relu(1000); }); };
  EXPECT_EQ(of_key().kernel, "fake");
  times.Prefer(Relu(1000), "inside");
  EXPECT_EQ(times.Time(Relu(1000)).kernel, "inside");
  EXPECT_EQ(times.Time(Relu(1000)).ns, 2 * Roofline(1000));
  EXPECT_EQ(of_key().kernel, "inside");
}

TEST_F(LearnedTimesTest, ATimeOfAKeyIsMadeOnceAndFollowsWhatIsLearned) {
  LearnedTimes times = Times();
  const LocalKey key{1, 2};
  int made = 0;
  const auto of_key = [&] {
    return times.TimeOf(key, [&] {
      ++made;
      return Relu(4000);
    });
  };
  EXPECT_EQ(of_key().ns, Roofline(4000));
  times.Want(Relu(1000));
  times.MeasureWanted();
  EXPECT_EQ(of_key().ns, 2 * Roofline(4000)) << "by the ratio of the other one";
  EXPECT_EQ(of_key().state, TimeState::kEstimated);
  times.Want(Relu(4000));
  times.MeasureWanted();
  EXPECT_TRUE(of_key().measured());
  EXPECT_EQ(made, 1);
}

TEST_F(LearnedTimesTest, AnEstimateIsScaledByTheMedianRatioOfItsKind) {
  factor_ = [](const GroupProblem& problem) {
    return problem.graph.type({problem.graph.inputs()[0], 0}).shape[0] > 2000 ? 9 : 3;
  };
  LearnedTimes times = Times();
  for (const int64_t n : {1000, 2000, 3000}) times.Want(Relu(n));
  times.MeasureWanted();
  EXPECT_DOUBLE_EQ(times.Time(Relu(4000)).ns, 3 * Roofline(4000));
  GroupProblem other = Relu(4000);  // No ratio of its pattern, so the ratio of all patterns.
  other.pattern = "other";
  EXPECT_DOUBLE_EQ(times.Time(other).ns, 3 * RooflineNs(other, spec_));
}

TEST_F(LearnedTimesTest, AFailedGroupIsNeverAskedForAgain) {
  failure_ = Err(StatusCode::kUnavailable, "executor died");
  LearnedTimes times = Times();
  times.Want(Relu(1000));
  times.MeasureWanted();
  times.Want(Relu(1000));
  times.MeasureWanted();
  EXPECT_EQ(calls_.size(), 1u);
  const GroupTime time = times.Time(Relu(1000));
  EXPECT_EQ(time.state, TimeState::kFailed);
  EXPECT_EQ(Message(time.failure), "executor died");
  EXPECT_EQ(times.failed(), 1);
}

TEST_F(LearnedTimesTest, ATimeThatIsNoTimeIsAFailure) {
  for (const double bad : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    factor_ = [bad](const GroupProblem&) { return bad; };
    LearnedTimes times = Times();
    times.Want(Relu(1000));
    times.MeasureWanted();
    EXPECT_EQ(times.Time(Relu(1000)).state, TimeState::kFailed) << bad;
  }
}

TEST_F(LearnedTimesTest, BatchesAreBoundedAndTheLimitHolds) {
  LearnedTimes times = Times(/*groups_max=*/300);
  for (int64_t n = 1; n <= 400; ++n) times.Want(Relu(n));
  times.MeasureWanted();
  ASSERT_EQ(calls_.size(), 2u);
  EXPECT_EQ(calls_[0], 256u);
  EXPECT_EQ(calls_[1], 44u);
  EXPECT_TRUE(times.Exhausted());
  EXPECT_EQ(times.Time(Relu(300)).state, TimeState::kMeasured);
  EXPECT_EQ(times.Time(Relu(301)).state, TimeState::kEstimated);
}

TEST_F(LearnedTimesTest, ACallMayBeLimitedAndForgetsTheRest) {
  LearnedTimes times = Times();
  for (int64_t n = 1; n <= 3; ++n) times.Want(Relu(n));
  times.MeasureWanted(2);
  EXPECT_EQ(times.measured(), 2);
  EXPECT_FALSE(times.Exhausted());
  times.Want(Relu(3));
  times.MeasureWanted();
  EXPECT_EQ(times.measured(), 3);
}

TEST_F(LearnedTimesTest, StopEndsMeasuringForGood) {
  bool stop = true;
  LearnedTimes times(spec_, Measure(), {.groups_max = 10, .stop = [&stop] { return stop; }});
  times.Want(Relu(1));
  times.MeasureWanted();
  stop = false;
  times.Want(Relu(1));
  times.MeasureWanted();
  EXPECT_TRUE(times.Exhausted());
  EXPECT_TRUE(calls_.empty());
}

TEST_F(LearnedTimesTest, ACancelledMeasurementSaysNothingOfTheGroup) {
  failure_ = Err(StatusCode::kCancelled, "job cancelled");
  LearnedTimes times = Times();
  times.Want(Relu(1));
  times.MeasureWanted();
  EXPECT_EQ(times.Time(Relu(1)).state, TimeState::kEstimated);
  EXPECT_EQ(times.failed(), 0);
  EXPECT_TRUE(times.Exhausted());
}

TEST_F(LearnedTimesTest, AStageMeasuresOnAfterOneThatWasCut) {
  failure_ = Err(StatusCode::kCancelled, "time is up");
  LearnedTimes times = Times();
  times.Want(Relu(1));
  times.MeasureWanted();
  EXPECT_TRUE(times.Exhausted());
  failure_ = OkStatus();
  times.BeginStage();
  EXPECT_FALSE(times.Exhausted());
  times.Want(Relu(1));
  times.MeasureWanted();
  EXPECT_EQ(times.Time(Relu(1)).state, TimeState::kMeasured);
  EXPECT_EQ(times.asked(), 1);
}

TEST_F(LearnedTimesTest, AStageAsksForNoMoreThanItsShare) {
  LearnedTimes times = Times();
  times.BeginStage(2);
  for (int i = 1; i <= 3; ++i) times.Want(Relu(i));
  times.MeasureWanted();
  EXPECT_EQ(times.measured(), 2);
  EXPECT_TRUE(times.Exhausted());
  times.BeginStage(1);
  for (int i = 1; i <= 5; ++i) times.Want(Relu(i));
  times.MeasureWanted();
  EXPECT_EQ(times.measured(), 3);
}

TEST_F(LearnedTimesTest, AViewTakesNoTimeAndIsNeverMeasured) {
  LearnedTimes times = Times();
  GroupProblem view = Relu(1);
  view.pattern = kViewPattern;
  times.Want(view);
  times.MeasureWanted();
  EXPECT_EQ(times.Time(view).state, TimeState::kMeasured);
  EXPECT_EQ(times.Time(view).ns, 0);
  EXPECT_TRUE(calls_.empty());
}

TEST_F(LearnedTimesTest, WantingTimesWantsWhatIsUnknown) {
  LearnedTimes times = Times();
  WantingTimes wanting(times);
  EXPECT_FALSE(wanting.Time(Relu(1)).measured());
  times.MeasureWanted();
  EXPECT_TRUE(wanting.Time(Relu(1)).measured());
  EXPECT_EQ(calls_.size(), 1u);
}

TEST_F(LearnedTimesTest, AtOnceMeasuresWhatIsUnknown) {
  LearnedTimes times(spec_, Measure(), {.at_once = true});
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(times.Time(Relu(1)).measured());
  EXPECT_EQ(calls_, std::vector<size_t>{1});
  EXPECT_EQ(times.MeasurementOf(Relu(1))->kernel, "fake");
  EXPECT_FALSE(times.MeasurementOf(Relu(2)).has_value());
}

// The two operators as one group have an estimate that is less than their sum apart, and a failure.
TEST_F(LearnedTimesTest, CoversAvoidGroupsThatFailed) {
  const Graph graph = GraphOf("input x f32[8]\noutput relu(exp(x))\n");
  LearnedTimes times(spec_,
                     [&](const std::vector<GroupProblem>& problems) {
                       const bool is_fused = problems[0].graph.size() > 2;
                       std::vector<StatusOr<Measurement>> results = Measure()(problems);
                       if (is_fused) results[0] = Err(StatusCode::kInternal, "no kernel");
                       return results;
                     },
                     {.at_once = true});
  factor_ = [](const GroupProblem&) { return 1e6; };
  EXPECT_EQ(Summary(graph, *FormGroups(graph, spec_, {}, times)),
            (std::vector<std::string>{"chain Exp", "chain Relu"}));
}

// Two copies and what they were made of, which sees nothing of them until it takes it.
TEST_F(LearnedTimesTest, CopiesLearnByThemselves) {
  LearnedTimes times = Times();
  const auto learn = [](LearnedTimes& by, std::vector<int64_t> groups) {
    for (const int64_t n : groups) by.Want(Relu(n));
    by.MeasureWanted();
  };
  learn(times, {1000});
  const LocalKey key{1, 2}, estimate{3, 4};
  LearnedTimes one(times, Measure(), {.groups_max = 2});
  LearnedTimes other(times, Measure(), {});
  learn(one, {1000, 2000, 3000, 4000});
  const auto time_of = [](LearnedTimes& by, const LocalKey& at, int64_t n, int* made) {
    return by.TimeOf(at, [&] {
      ++*made;
      return Relu(n);
    });
  };
  int made = 0;
  time_of(one, key, 2000, &made);
  time_of(one, estimate, 4000, &made);
  factor_ = [](const GroupProblem&) { return 5; };
  learn(other, {3000});
  EXPECT_EQ(one.asked(), 3) << "of its two, and what was known";
  EXPECT_TRUE(one.Exhausted());
  EXPECT_FALSE(one.Stopped());
  EXPECT_EQ(one.LeftToAsk(), 0);
  EXPECT_FALSE(times.Time(Relu(2000)).measured());
  EXPECT_FALSE(other.Time(Relu(2000)).measured());

  const int64_t version = times.version();
  times.TakeFrom(one);
  times.TakeFrom(other);
  EXPECT_GT(times.version(), version);
  EXPECT_EQ(times.Time(Relu(2000)).ns, 2 * Roofline(2000));
  EXPECT_EQ(times.Time(Relu(3000)).ns, 2 * Roofline(3000)) << "the first answer stays";
  EXPECT_EQ(times.Time(Relu(4000)).ns, 2 * Roofline(4000)) << "estimated by the ratios of all";
  EXPECT_EQ(times.measured(), 3);
  EXPECT_EQ(times.asked(), 4) << "the third group was asked for twice";
  EXPECT_EQ(time_of(times, key, 2000, &made).ns, 2 * Roofline(2000));
  EXPECT_EQ(made, 2) << "the copy's";
  EXPECT_EQ(time_of(times, estimate, 4000, &made).ns, 2 * Roofline(4000));
  EXPECT_EQ(made, 3) << "estimates are not taken";
}

TEST_F(LearnedTimesTest, FailuresAndEndsOfCopiesAreTakenToo) {
  LearnedTimes times = Times();
  failure_ = Err(StatusCode::kInternal, "broken");
  LearnedTimes failed(times, Measure(), {});
  failed.Want(Relu(1000));
  failed.MeasureWanted();
  times.TakeFrom(failed);
  EXPECT_EQ(times.Time(Relu(1000)).state, TimeState::kFailed);
  EXPECT_EQ(times.failed(), 1);
  EXPECT_FALSE(times.Stopped());
  failure_ = Err(StatusCode::kCancelled, "time is up");
  LearnedTimes cut(times, Measure(), {});
  cut.Want(Relu(2000));
  cut.MeasureWanted();
  times.TakeFrom(cut);
  EXPECT_TRUE(times.Stopped());
  EXPECT_EQ(times.asked(), 1);
  times.BeginStage();
  EXPECT_FALSE(times.Stopped());
}

}  // namespace
}  // namespace ag
