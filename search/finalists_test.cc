#include "search/finalists.h"

#include <gmock/gmock.h>

#include <cmath>

namespace ag {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

PlanTiming Timing(double speedup, Verdict verdict) {
  return {.latency = {100, 99, 101},
          .speedup = speedup,
          .speedup_low = speedup * 0.98,
          .speedup_high = speedup * 1.02,
          .verdict = verdict};
}

// Returns a measured plan of graph number `graph` on `streams` streams.
MeasuredPlan Measured(int graph, int streams, double speedup) {
  MeasuredPlan measured;
  measured.candidate.plan.graph.bytes[0] = static_cast<uint8_t>(graph);
  for (int i = 0; i < streams; ++i) {
    measured.candidate.plan.streams.push_back({.launches = {{.group = i}}});
  }
  measured.timing = Timing(speedup, speedup < 1 ? Verdict::kSlower : Verdict::kFaster);
  return measured;
}

TEST(ChooseFinalists, TakesTheFastestFirstAndLeavesOutWhatWasSlower) {
  EXPECT_THAT(ChooseFinalists({}), IsEmpty());
  EXPECT_THAT(ChooseFinalists({Measured(1, 1, 0.9), Measured(2, 1, 1.1), Measured(3, 1, 1.3)}),
              ElementsAre(2, 1));
}

TEST(ChooseFinalists, TakesAtMostThreeAndTheEarlierOfEqualOnes) {
  EXPECT_THAT(ChooseFinalists({Measured(1, 1, 1.1), Measured(2, 1, 1.2), Measured(3, 1, 1.2),
                               Measured(4, 1, 1.15)}),
              ElementsAre(1, 2, 3));
}

TEST(ChooseFinalists, OneStreamOfTheFirstGraphJoinsWhenNoneIsAmongThem) {
  EXPECT_THAT(ChooseFinalists({Measured(1, 1, 0.9), Measured(2, 1, 0.95), Measured(2, 2, 1.2)}),
              ElementsAre(2, 1));
}

TEST(MakeSecondTheBase, TakesAllSpeedupsOverIt) {
  std::vector<PlanTiming> timings = {Timing(1, Verdict::kSame), Timing(1.25, Verdict::kFaster),
                                     Timing(1.5, Verdict::kFaster)};
  timings[1].latency = {80, 79, 81};
  MakeSecondTheBase(&timings);
  EXPECT_EQ(timings[0].latency.median_ns, 80);
  EXPECT_EQ(timings[0].speedup, 1);
  EXPECT_EQ(timings[0].speedup_high, 1);
  EXPECT_EQ(timings[0].verdict, Verdict::kSame);
  EXPECT_EQ(timings[1].latency.median_ns, 100);
  EXPECT_DOUBLE_EQ(timings[1].speedup, 0.8);
  EXPECT_DOUBLE_EQ(timings[1].speedup_low, 1 / (1.25 * 1.02));
  EXPECT_DOUBLE_EQ(timings[1].speedup_high, 1 / (1.25 * 0.98));
  EXPECT_EQ(timings[1].verdict, Verdict::kSlower);
  EXPECT_DOUBLE_EQ(timings[2].speedup, 1.2);
}

TEST(ChooseWinners, TheLargestLowerEndAboveOneFirst) {
  EXPECT_THAT(ChooseWinners({}), IsEmpty());
  EXPECT_THAT(ChooseWinners({Timing(1.01, Verdict::kAmbiguous), Timing(1.03, Verdict::kSame)}),
              IsEmpty());
  EXPECT_THAT(ChooseWinners({Timing(1.1, Verdict::kFaster), Timing(1.3, Verdict::kAmbiguous),
                             Timing(1.2, Verdict::kFaster)}),
              ElementsAre(1, 2, 0));
  PlanTiming wide = Timing(1.3, Verdict::kFaster);
  wide.speedup_low = 1.01;
  EXPECT_THAT(ChooseWinners({wide, Timing(1.2, Verdict::kFaster)}), ElementsAre(1, 0));
}

TEST(ChooseWinners, ACrashedCandidateNeverWins) {
  PlanTiming crashed = Timing(2, Verdict::kFaster);
  crashed.status = Err(StatusCode::kUnavailable, "executor died");
  EXPECT_THAT(ChooseWinners({crashed}), IsEmpty());
}

TEST(BestVerdict, NamesWhatTheBestRivalGot) {
  const auto verdict = [](const std::vector<Verdict>& verdicts) {
    std::vector<PlanTiming> timings;
    for (const Verdict v : verdicts) timings.push_back(Timing(1, v));
    return BestVerdict(timings);
  };
  EXPECT_EQ(verdict({}), Verdict::kSame);
  EXPECT_EQ(verdict({Verdict::kSlower}), Verdict::kSlower);
  EXPECT_EQ(verdict({Verdict::kSlower, Verdict::kSame}), Verdict::kSame);
  EXPECT_EQ(verdict({Verdict::kSame, Verdict::kAmbiguous}), Verdict::kAmbiguous);
}

TEST(CheckedTiming, ATimeThatIsNoTimeIsAFailure) {
  for (const double bad : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    PlanTiming timing = Timing(1.5, Verdict::kFaster);
    timing.latency.median_ns = bad;
    EXPECT_EQ(CheckedTiming(timing).status.code(), StatusCode::kInternal) << bad;
  }
  EXPECT_TRUE(CheckedTiming(Timing(1.5, Verdict::kFaster)).status.ok());
}

}  // namespace
}  // namespace ag
