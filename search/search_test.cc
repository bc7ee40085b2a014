#include "search/search.h"

#include <gmock/gmock.h>

#include <set>

#include "plan/format/plan_codec.h"
#include "plan/format/plan_validate.h"
#include "plan/testing/testing.h"
#include "search/testing/find_plan_test.h"
#include "search/testing/testing.h"

namespace ag {
namespace {

using testing::AnyOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// (x v) w = x (v w), and v w is a constant: one launch less, half the work.
constexpr std::string_view kTwoProducts = R"(
input x f32[64,64]
v = const f32[64,64] seed 1
w = const f32[64,64] seed 2
output "y" = matmul(matmul(x, v), w)
)";
constexpr std::string_view kReluTwice = "relu-twice [exact]: relu(x) => relu(relu(x))\n";

// Three products in a row, twice: several rewrites, in several orders.
constexpr std::string_view kSixProducts = R"(
input x f32[64,64]
a = const f32[64,64] seed 1
b = const f32[64,64] seed 2
c = const f32[64,64] seed 3
d = const f32[64,64] seed 4
p = matmul(matmul(matmul(x, a), b), c)
q = matmul(matmul(matmul(x, b), c), d)
output "y" = add(p, q)
)";

// A clock that advances with every question, to stop the search at many different points.
class TickingClock : public FakeClock {
 public:
  explicit TickingClock(Nanos tick = Nanos{1}) : tick_(tick) {}
  Nanos Now() override {
    Advance(tick_);
    return FakeClock::Now();
  }

 private:
  const Nanos tick_;
};

class SearchTest : public FindPlanTest {};

TEST_F(SearchTest, FindsThePlantedWinAndSaysHow) {
  const SearchRequest request = Request(kTwoProducts, kReassociate);
  const auto result = Find(request);
  ASSERT_TRUE(result.ok()) << Message(result.status());
  ExpectSound(request, *result);
  EXPECT_EQ(result->timing.verdict, Verdict::kFaster);
  EXPECT_GT(result->timing.speedup, 1.2);
  EXPECT_EQ(result->plan.groups.size(),
            1u);  // The product of constants is folded: no group, no time.
  ASSERT_THAT(result->rewrites, SizeIs(1));
  EXPECT_EQ(result->rewrites[0].rule, "matmul-reassociate");
  EXPECT_EQ(result->rewrites[0].count, 1);
  EXPECT_GT(result->rewrites[0].gain_ns, 0);
  EXPECT_EQ(result->stop_reason, StopReason::kNone);
  EXPECT_EQ(result->plan.environment, "device=test");
  EXPECT_EQ(result->plan.groups[0].kernel, "fake");
  EXPECT_TRUE(result->unfused_timing.status.ok());
  EXPECT_EQ(result->groups_failed, 0);
  // Rounds rank; the final comparison decides.
  ASSERT_GE(measurer_.plan_efforts.size(), 2u);
  EXPECT_EQ(measurer_.plan_efforts.back(), Measurer::Effort::kVerdict);
  measurer_.plan_efforts.pop_back();
  EXPECT_THAT(measurer_.plan_efforts, Each(Measurer::Effort::kRanking));
}

using Stage = CandidateOrigin::Stage;

// One row for each plan that was timed, with the estimates of its own groups.
TEST_F(SearchTest, TheLogHasWhatWasTimedAndWhatWasPredictedOfIt) {
  SearchRequest request = Request(kTwoProducts, kReassociate);
  request.options.limits.cell_graphs_max = 0;
  const auto result = Find(request);
  ASSERT_TRUE(result.ok()) << Message(result.status());
  const std::vector<MeasuredCandidate>& measured = result->log.measured;
  std::vector<std::string> rows;
  for (const MeasuredCandidate& row : measured) {
    rows.push_back(fmt::format("{}{}{} {} rewrites {} groups",
                               row.origin.stage == Stage::kInput ? "input" : "round ",
                               row.origin.stage == Stage::kInput ? "" : "1",
                               row.is_final ? " final" : "", row.rewrites, row.estimates.groups));
    EXPECT_EQ(row.streams, 1);
    EXPECT_TRUE(row.timing.status.ok());
    // On one stream nothing is hidden, and the fake plays the simulated time.
    EXPECT_DOUBLE_EQ(row.estimates.makespan_ns, row.estimates.sum_ns);
    EXPECT_DOUBLE_EQ(row.estimates.mixed_ns,
                     row.estimates.sum_ns + 0.25 * row.estimates.critical_path_ns);
  }
  EXPECT_THAT(rows,
              ElementsAre("input 0 rewrites 2 groups", "input 0 rewrites 2 groups",
                          "round 1 1 rewrites 1 groups", "input final 0 rewrites 2 groups",
                          "round 1 final 1 rewrites 1 groups", "input final 0 rewrites 2 groups"));
  EXPECT_EQ(measured[0].timing.speedup, 1);
  EXPECT_EQ(measured[4].timing.speedup, result->timing.speedup);
  EXPECT_EQ(measured[4].estimates.makespan_ns, result->estimate_ns);
}

// The search's clock tells the seconds of the history; the answer is the same whatever it says.
TEST_F(SearchTest, TheHistoryHasAPointForEachSetOfPlans) {
  const SearchRequest request = Request(kSixProducts, kReassociate);
  const auto still = Find(request);
  TickingClock ticking(Nanos{1'000'000});
  const auto result = FindPlan(request, measurer_, ticking);
  ASSERT_TRUE(still.ok() && result.ok());
  EXPECT_EQ(EncodePlan(still->plan), EncodePlan(result->plan));
  const std::vector<SearchPoint>& history = result->log.history;
  // The input, what cells found, each round with new graphs, the final comparison.
  ASSERT_THAT(history, SizeIs(testing::AllOf(testing::Ge(3u), testing::Le(4u + 4u))));
  for (size_t i = 1; i < history.size(); ++i) {
    EXPECT_GT(history[i].seconds, history[i - 1].seconds);
    EXPECT_GE(history[i].graphs, history[i - 1].graphs);
    EXPECT_GE(history[i].best_speedup, history[i - 1].best_speedup);
  }
  EXPECT_GT(history.front().seconds, 0);
  EXPECT_EQ(history.front().candidates, 0);
  EXPECT_EQ(history.back().graphs, result->graphs + result->cell_graphs);
  EXPECT_EQ(history.back().candidates, result->candidates);
  EXPECT_EQ(history.back().best_speedup, result->best_speedup);
  for (const SearchPoint& point : still->log.history) EXPECT_EQ(point.seconds, 0);
}

// A plan that fails has its reason in place of a time.
TEST_F(SearchTest, TheLogSaysWhyAPlanHasNoTime) {
  SearchRequest request = Request(kTwoProducts, kReassociate);
  request.options.limits.cell_graphs_max = 0;
  measurer_.plan_failure = [&](const Candidate& candidate) {
    return candidate.graph.digest() == request.input.digest()
               ? OkStatus()
               : Err(StatusCode::kInternal, "it crashed");
  };
  const auto result = Find(request);
  ASSERT_TRUE(result.ok()) << Message(result.status());
  int failed = 0;
  for (const MeasuredCandidate& row : result->log.measured) {
    if (row.timing.status.ok()) continue;
    ++failed;
    EXPECT_EQ(Message(row.timing.status), "it crashed");
    EXPECT_EQ(row.origin, (CandidateOrigin{Stage::kRound, 1}));
  }
  EXPECT_EQ(failed, 1);
}

constexpr std::string_view kConv = R"(
input x f32[1,32,8,8]
w = const f32[32,32,3,3] seed 1
b = const f32[32] seed 2
output "y" = conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]
)";

// A device whose convolutions have two layouts.
DeviceSpec SpecOfTwoLayouts() {
  DeviceSpec spec = SmallSpec();
  spec.cache_bytes_per_second = 1e9;
  for (GroupPattern& pattern : spec.patterns) {
    if (pattern.name == "conv") pattern.layouts = {Layout::kBlocked16, Layout::kChannelsLast};
  }
  return spec;
}

// Measured kernels that are slower together than what a session takes without measuring.
TEST_F(SearchTest, TheInputsPlanIsNoSlowerThanASessionsGuess) {
  const auto is_guess = [](const Plan& plan) {
    return std::ranges::all_of(plan.groups, [](const Group& g) { return g.kernel.empty(); });
  };
  // With two layouts the guess is timed beside them, with one beside the input itself.
  for (const DeviceSpec& spec : {SpecOfTwoLayouts(), SmallSpec()}) {
    for (const double guess_ns : {1000.0, 3000.0}) {
      FakeMeasurer measurer(spec);
      measurer.plan_ns = [&](const Candidate& candidate) {
        return is_guess(candidate.plan) ? guess_ns : 2000.0;
      };
      SearchRequest request = Request(kConv, "");
      request.spec = measurer.spec();
      const auto result = FindPlan(request, measurer, clock_);
      ASSERT_TRUE(result.ok()) << Message(result.status());
      ExpectSound(request, *result);
      EXPECT_EQ(is_guess(result->input_plan), guess_ns < 2000) << guess_ns;
      EXPECT_EQ(result->input_timing.latency.median_ns, std::min(guess_ns, 2000.0));
    }
  }
}

// Groups that take equally long in both layouts: plans timed as a whole tell which one is faster.
TEST_F(SearchTest, TheInputsLayoutIsChosenByWholePlans) {
  const auto has = [](const Plan& plan, Layout layout) {
    return std::ranges::any_of(plan.groups, [&](const Group& group) {
      return group.pattern == "conv" && group.outputs[0].layout == layout;
    });
  };
  const DeviceSpec spec = SpecOfTwoLayouts();
  for (const auto& [refines_max, faster, expected] :
       {std::tuple(6, Layout::kChannelsLast, Layout::kChannelsLast),
        std::tuple(6, Layout::kBlocked16, Layout::kBlocked16),
        std::tuple(0, Layout::kChannelsLast, Layout::kBlocked16)}) {
    FakeMeasurer measurer(spec);
    measurer.group_ns = [](const GroupProblem&) { return 1000.0; };
    measurer.plan_ns = [&, layout = faster](const Candidate& candidate) {
      return has(candidate.plan, layout) ? 2000.0 : 2500.0;
    };
    SearchRequest request = Request(kConv, "");
    request.spec = measurer.spec();
    request.options.limits.refines_max = refines_max;
    const auto result = FindPlan(request, measurer, clock_);
    ASSERT_TRUE(result.ok()) << Message(result.status());
    EXPECT_TRUE(has(result->input_plan, expected)) << refines_max;
  }
}

TEST_F(SearchTest, WithoutRulesTheInputComesBack) {
  const SearchRequest request = Request(kTwoProducts, "");
  const auto result = Find(request);
  ASSERT_TRUE(result.ok()) << Message(result.status());
  ExpectSound(request, *result);
  EXPECT_EQ(result->timing.verdict, Verdict::kSame);
  EXPECT_EQ(result->stop_reason, StopReason::kNone);
  EXPECT_EQ(result->rounds, 1);
  EXPECT_EQ(result->expansions, 1);
  EXPECT_EQ(result->candidates, 0);
}

TEST_F(SearchTest, WhatOnlyTheEstimateLikesIsRefused) {
  const SearchRequest request = Request(kTwoProducts, kReassociate);
  measurer_.plan_ns = [&](const Candidate& candidate) {
    return candidate.graph.digest() == request.input.digest() ? 1e6 : 2e6;
  };
  const auto result = Find(request);
  ASSERT_TRUE(result.ok()) << Message(result.status());
  ExpectSound(request, *result);
  EXPECT_EQ(result->candidates, 1);
  EXPECT_EQ(result->graph.digest(), request.input.digest());
}

TEST_F(SearchTest, WhatWonOnceButNotInTheFinalComparisonIsRefused) {
  const SearchRequest request = Request(kTwoProducts, kReassociate);
  int calls = 0;
  measurer_.plan_ns = [&](const Candidate& candidate) {
    if (candidate.graph.digest() == request.input.digest()) return 1e6;
    return ++calls == 1 ? 5e5 : 1e6;
  };
  const auto result = Find(request);
  ASSERT_TRUE(result.ok()) << Message(result.status());
  ExpectSound(request, *result);
  EXPECT_EQ(result->timing.verdict, Verdict::kSame);
}

TEST_F(SearchTest, AFailingGroupCostsOnlyTheGraphsThatNeedIt) {
  // The second rule leads to graphs with neg, and every group with a neg fails.
  const SearchRequest request = Request(
      "input x f32[64,64]\nv = const f32[64,64] seed 1\nw = const f32[64,64] seed 2\n"
      "output \"y\" = matmul(matmul(x, v), w)\n",
      std::string(kReassociate) +
          "matmul-split [rounding]: matmul(x, w) => neg(matmul(neg(x), w))\n");
  measurer_.group_failure = [](const GroupProblem& problem) {
    const bool has_neg = std::ranges::any_of(
        problem.graph.nodes(), [](const Node& node) { return node.op == OpKind::kNeg; });
    return has_neg ? Err(StatusCode::kUnavailable, "executor died") : OkStatus();
  };
  const auto result = Find(request);
  ASSERT_TRUE(result.ok()) << Message(result.status());
  ExpectSound(request, *result);
  EXPECT_EQ(result->timing.verdict, Verdict::kFaster);
  ASSERT_THAT(result->rewrites, SizeIs(1));
  EXPECT_EQ(result->rewrites[0].rule, "matmul-reassociate");
}

TEST_F(SearchTest, AFailingCandidatePlanIsLeftOut) {
  const SearchRequest request = Request(kTwoProducts, kReassociate);
  measurer_.plan_failure = [&](const Candidate& candidate) {
    return candidate.graph.digest() == request.input.digest()
               ? OkStatus()
               : Err(StatusCode::kUnavailable, "executor died");
  };
  const auto result = Find(request);
  ASSERT_TRUE(result.ok()) << Message(result.status());
  ExpectSound(request, *result);
  EXPECT_EQ(result->graph.digest(), request.input.digest());
  EXPECT_THAT(result->warnings, ElementsAre("candidate: executor died"));
}

TEST_F(SearchTest, AnInputThatCannotBeTimedIsTheMeasurersError) {
  const SearchRequest request = Request(kTwoProducts, kReassociate);
  measurer_.call_failure = [](int) { return Err(StatusCode::kUnavailable, "no worker"); };
  EXPECT_EQ(ToString(Find(request).status()), "UNAVAILABLE: no worker");
  measurer_.call_failure = nullptr;
  measurer_.plan_failure = [](const Candidate&) {
    return Err(StatusCode::kUnavailable, "executor died");
  };
  EXPECT_EQ(ToString(Find(request).status()), "UNAVAILABLE: input: executor died");
}

TEST_F(SearchTest, AnInputGroupThatFailsDoesNotStopAnInputThatRuns) {
  const SearchRequest request = Request(kTwoProducts, kReassociate);
  measurer_.group_failure = [](const GroupProblem&) { return Err(StatusCode::kInternal, "no"); };
  const auto result = Find(request);
  ASSERT_TRUE(result.ok()) << Message(result.status());
  ExpectSound(request, *result);
  EXPECT_EQ(result->estimate_ns, 0);
  EXPECT_EQ(result->groups_measured, 0);
  EXPECT_GT(result->groups_failed, 0);
}

TEST_F(SearchTest, AnOperatorThatTheDeviceLacksIsNamed) {
  SearchRequest request = Request(kTwoProducts, kReassociate);
  request.spec.patterns.erase(request.spec.patterns.begin());
  const Status status = Find(request).status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(Message(status), testing::HasSubstr("MatMul"));
}

TEST_F(SearchTest, PlansThatCanNoLongerBeMeasuredEndTheSearch) {
  const SearchRequest request = Request(kTwoProducts, kReassociate);
  measurer_.call_failure = [](int call) {
    return call == 0 ? OkStatus() : Err(StatusCode::kUnavailable, "no worker");
  };
  const auto result = Find(request);
  ASSERT_TRUE(result.ok()) << Message(result.status());
  ExpectSound(request, *result);
  EXPECT_EQ(result->stop_reason, StopReason::kUnavailable);
  EXPECT_TRUE(result->input_timing.status.ok());
}

TEST_F(SearchTest, EachCountLimitNamesTheStop) {
  struct Case {
    std::string_view name;
    SearchLimits limits;
    StopReason reason;
  };
  const std::vector<Case> cases = {
      {"rounds", {.rounds_max = 1}, StopReason::kRounds},
      {"expansions",
       {.rounds_max = 9, .expansions_max = 1, .candidates_max = 0},
       StopReason::kExpansions},
      {"graphs", {.rounds_max = 9, .graphs_max = 1, .candidates_max = 0}, StopReason::kGraphs},
      {"groups", {.candidates_max = 0, .groups_max = 1}, StopReason::kGroups},
      {"time", {.time_max = Nanos{0}}, StopReason::kTime},
      {"none", {.rounds_max = 99, .stale_graphs_max = 0}, StopReason::kNone},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    SearchRequest request = Request(kSixProducts, kReassociate);
    request.options.limits = c.limits;
    const auto result = Find(request);
    ASSERT_TRUE(result.ok()) << Message(result.status());
    ExpectSound(request, *result);
    EXPECT_EQ(result->stop_reason, c.reason);
    EXPECT_LE(result->rounds, c.limits.rounds_max);
    EXPECT_LE(result->groups_measured, c.limits.groups_max);
  }
}

TEST_F(SearchTest, TheStateSaysWhetherTheSearchRan) {
  for (const StopReason reason : {StopReason::kNone, StopReason::kRounds, StopReason::kExpansions,
                                  StopReason::kGraphs, StopReason::kStale, StopReason::kGroups}) {
    EXPECT_EQ(SearchStateOf(reason, 1, 0), SearchState::kComplete);
  }
  for (const StopReason reason :
       {StopReason::kTime, StopReason::kCancelled, StopReason::kUnavailable, StopReason::kGoesOn}) {
    EXPECT_EQ(SearchStateOf(reason, 1, 0), SearchState::kStopped);
    EXPECT_EQ(SearchStateOf(reason, 0, 1), SearchState::kStopped);
    EXPECT_EQ(SearchStateOf(reason, 0, 0), SearchState::kNotSearched);
  }
}

// 40 graphs in one expansion, and 1,000 / 41 nodes x 1 without a gain end a round. The beam does
// not follow, which would score the other pairs.
TEST_F(SearchTest, ARoundWithoutGainsEndsItAndIsNamed) {
  std::string chain = "x";
  for (int i = 0; i < 40; ++i) chain = fmt::format("tanh({})", chain);
  SearchRequest request = Request(fmt::format("input x f32[64,64]\noutput \"y\" = {}\n", chain),
                                  "to-pair [exact]: tanh(x) => neg(neg(x))\n");
  request.options.beta = 100;
  measurer_.group_ns = [](const GroupProblem&) { return 1'000; };
  request.options.limits = {.rounds_max = 9, .stale_graphs_max = 1, .candidates_max = 0};
  request.options.limits.cell_graphs_max = 0;
  const auto result = Find(request);
  ASSERT_TRUE(result.ok()) << Message(result.status());
  EXPECT_EQ(result->stop_reason, StopReason::kStale);
  EXPECT_EQ(result->graphs, 40);
}

// Each round finds a plan that is as fast as the input's.
TEST_F(SearchTest, RoundsWithoutAFasterPlanEndIt) {
  SearchRequest request = Request("input x f32[64,64]\noutput \"y\" = tanh(tanh(tanh(tanh(x))))\n",
                                  "to-pair [exact]: tanh(x) => neg(neg(x))\n");
  request.options.beta = 100;
  request.options.limits.cell_graphs_max = 0;
  measurer_.plan_ns = [](const Candidate&) { return 1'000; };
  for (const int stale_graphs_max : {500, 0}) {
    request.options.limits.stale_graphs_max = stale_graphs_max;
    const auto result = Find(request);
    ASSERT_TRUE(result.ok()) << Message(result.status());
    const bool may_be_stale = stale_graphs_max > 0;
    EXPECT_EQ(result->stop_reason, may_be_stale ? StopReason::kStale : StopReason::kNone);
    EXPECT_EQ(result->rounds > 3, !may_be_stale);
  }
}

// The time ends when the first round begins, or during its first graph.
TEST_F(SearchTest, ARoundThatExpandedNothingIsNone) {
  SearchRequest request = Request(kSixProducts, kReassociate);
  int not_searched = 0, stopped = 0;
  for (int64_t ticks = 1; ticks <= 100; ++ticks) {
    request.options.limits = {.time_max = Nanos{ticks}};
    TickingClock clock;
    const auto result = FindPlan(request, measurer_, clock);
    ASSERT_TRUE(result.ok()) << Message(result.status());
    if (result->stop_reason != StopReason::kTime) continue;
    const SearchState state =
        SearchStateOf(result->stop_reason, result->rounds, result->cell_graphs);
    EXPECT_EQ(state == SearchState::kNotSearched, result->expansions == 0) << ticks;
    ++(state == SearchState::kNotSearched ? not_searched : stopped);
  }
  EXPECT_GT(not_searched, 0);
  EXPECT_GT(stopped, 0);
}

TEST_F(SearchTest, CancelledBeforeAnythingReturnsTheInputUntimed) {
  SearchRequest request = Request(kTwoProducts, kReassociate);
  request.cancelled = [] { return true; };
  const auto result = Find(request);
  ASSERT_TRUE(result.ok()) << Message(result.status());
  EXPECT_EQ(result->stop_reason, StopReason::kCancelled);
  EXPECT_EQ(result->graph.digest(), request.input.digest());
  EXPECT_EQ(result->input_timing.status.code(), StatusCode::kCancelled);
  EXPECT_THAT(measurer_.plan_calls, IsEmpty());
  EXPECT_THAT(measurer_.group_calls, IsEmpty());
}

TEST_F(SearchTest, CancelledKeepsTheBestSoFar) {
  SearchRequest request = Request(kTwoProducts, kReassociate);
  // The input, then round one.
  request.cancelled = [&] { return measurer_.plan_calls.size() >= 2; };
  const auto result = Find(request);
  ASSERT_TRUE(result.ok()) << Message(result.status());
  ExpectSound(request, *result);
  EXPECT_EQ(result->stop_reason, StopReason::kCancelled);
  EXPECT_EQ(result->timing.verdict, Verdict::kFaster);
  // The input and the winner, without the unfused plan.
  EXPECT_THAT(measurer_.plan_calls.back(), SizeIs(2));
}

// Asks for the best at every step: each answer is sound, the last one is what is found, and the
// search is not changed by it.
TEST_F(SearchTest, TheBestSoFarIsOfferedAtEveryStep) {
  SearchRequest request = Request(kSixProducts, kReassociate);
  const auto alone = Find(request);
  ASSERT_TRUE(alone.ok()) << Message(alone.status());
  std::vector<SearchResult> offered;
  request.wants_best = [] { return true; };
  request.on_best = [&](const SearchResult& result) { offered.push_back(result); };
  const auto result = Find(request);
  ASSERT_TRUE(result.ok()) << Message(result.status());
  ASSERT_GT(offered.size(), 2u);
  double speedup = 1;
  for (const SearchResult& best : offered) {
    ExpectSound(request, best);
    EXPECT_EQ(best.stop_reason, StopReason::kGoesOn);
    EXPECT_EQ(
        SearchStateOf(best.stop_reason, best.rounds, best.cell_graphs) == SearchState::kNotSearched,
        best.rounds == 0 && best.cell_graphs == 0);
    EXPECT_GE(best.timing.speedup, speedup);
    speedup = best.timing.speedup;
  }
  EXPECT_EQ(offered.front().graph.digest(), request.input.digest());
  EXPECT_EQ(offered.back().graph.digest(), result->graph.digest());
  EXPECT_FALSE(offered.back().steps.empty());
  EXPECT_EQ(result->graph.digest(), alone->graph.digest());
  EXPECT_EQ(result->graphs, alone->graphs);
}

// Who takes the best may tell the measurer another end.
TEST_F(SearchTest, TheMeasurersEndIsToldAgainAfterTheBestWasOffered) {
  class EndingMeasurer : public FakeMeasurer {
   public:
    using FakeMeasurer::FakeMeasurer;
    void EndBy(Nanos until) override { end = until; }
    Nanos end = Nanos::max();
  } measurer(TestSpec());
  SearchRequest request = Request(kTwoProducts, kReassociate);
  int offered = 0;
  request.wants_best = [&] {
    EXPECT_NE(measurer.end, Nanos{1}) << "after " << offered;
    return true;
  };
  request.on_best = [&](const SearchResult&) {
    ++offered;
    measurer.EndBy(Nanos{1});
  };
  ASSERT_TRUE(FindPlan(request, measurer, clock_).ok());
  EXPECT_GT(offered, 2);
}

// Cancels at the n-th question, for every n: the answer is always sound.
TEST_F(SearchTest, CancelledAtAnyPointTheAnswerIsSound) {
  SearchRequest request = Request(kSixProducts, kReassociate);
  for (int n = 0, asked = n; asked >= n; ++n) {
    asked = 0;
    request.cancelled = [&] { return asked++ >= n; };
    const auto result = Find(request);
    ASSERT_TRUE(result.ok()) << n << ": " << Message(result.status());
    ExpectSound(request, *result);
    EXPECT_THAT(result->stop_reason, AnyOf(StopReason::kCancelled, StopReason::kNone)) << n;
    if (result->stop_reason == StopReason::kNone) break;
  }
}

std::string Bytes(const SearchResult& result) {
  std::string bytes = EncodePlan(result.plan) + EncodePlan(result.input_plan) +
                      EncodePlan(result.unfused_plan) + result.graph.digest().Hex();
  for (const AppliedRewrite& r : result.rewrites) {
    bytes += fmt::format("{} {} {}\n", r.rule, r.count, r.gain_ns);
  }
  bytes +=
      fmt::format("{} {} {} {} {} {}", static_cast<int>(result.stop_reason), result.expansions,
                  result.graphs, result.candidates, result.groups_measured, result.estimate_ns);
  return bytes;
}

TEST_F(SearchTest, EqualSearchesGiveEqualBytes) {
  const SearchRequest request = Request(kSixProducts, kReassociate);
  const auto first = Find(request);
  const auto second = Find(request);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(Bytes(*first), Bytes(*second));
  EXPECT_EQ(first->timing.verdict, Verdict::kFaster);
}

// Also where a limit ends a round inside a batch of graphs that several threads made.
TEST_F(SearchTest, TheResultDoesNotDependOnTheNumberOfThreads) {
  for (const SearchMethod method : {SearchMethod::kOurs, SearchMethod::kPaper}) {
    SearchRequest request = Request(kSixProducts, kReassociate);
    request.options.method = method;
    request.options.partition = {.piece_nodes_max = 3, .region_nodes_max = 6};
    for (const int graphs_max : {1, 2, 3, 5, 8, 13, 5000}) {
      SCOPED_TRACE(graphs_max);
      request.options.limits.graphs_max = graphs_max;
      request.threads = 1;
      const auto one = Find(request);
      ASSERT_TRUE(one.ok()) << Message(one.status());
      for (const int threads : {2, 3, 7}) {
        request.threads = threads;
        const auto several = Find(request);
        ASSERT_TRUE(several.ok()) << Message(several.status());
        EXPECT_EQ(Bytes(*one), Bytes(*several)) << threads;
      }
    }
  }
}

// Replays searches that time stopped at many points.
class ReplayTest : public SearchTest, public testing::WithParamInterface<SearchMethod> {};

TEST_P(ReplayTest, ASearchStoppedByTimeIsReplayedByItsCounts) {
  SearchRequest request = Request(kSixProducts, kReassociate);
  request.options.method = GetParam();
  request.options.partition = {.piece_nodes_max = 3, .region_nodes_max = 6};
  measurer_.refine = [](const Candidate&) { return std::vector<KernelChoice>{{0, "inside"}}; };
  int stopped = 0;
  std::set<int> refined;
  // Ticks in which nothing can be refined, and ticks in which the input or all finalists can.
  for (const Nanos tick : {Nanos{1}, Nanos{20'000'000}}) {
    for (int64_t ticks = 1; ticks <= 1000; ticks += 1 + ticks / 30) {
      request.options.limits = {.candidates_max = 2, .time_max = ticks * tick};
      request.threads = 1 + static_cast<int>(ticks % 3);
      TickingClock clock(tick);
      const auto timed = FindPlan(request, measurer_, clock);
      ASSERT_TRUE(timed.ok()) << Message(timed.status());
      request.threads = 1;
      stopped += timed->stop_reason == StopReason::kTime;
      refined.insert(timed->plans_refined);
      request.options.limits = ReplayLimits(request.options.limits, *timed);
      const auto replay = Find(request);
      ASSERT_TRUE(replay.ok()) << Message(replay.status());
      EXPECT_EQ(EncodePlan(timed->plan), EncodePlan(replay->plan)) << ticks;
      EXPECT_EQ(timed->graph.digest(), replay->graph.digest()) << ticks;
      EXPECT_EQ(timed->graphs, replay->graphs) << ticks;
      EXPECT_EQ(timed->groups_measured, replay->groups_measured) << ticks;
      EXPECT_EQ(timed->plans_refined, replay->plans_refined) << ticks;
    }
  }
  EXPECT_GT(stopped, 40);
  EXPECT_THAT(refined, testing::IsSupersetOf({0, 1}));
  EXPECT_GT(*refined.rbegin(), 1);
}

INSTANTIATE_TEST_SUITE_P(Methods, ReplayTest,
                         testing::Values(SearchMethod::kOurs, SearchMethod::kPaper));

TEST_F(SearchTest, ThePapersSearchFindsTheSameWin) {
  SearchRequest request = Request(kSixProducts, kReassociate);
  const auto ours = Find(request);
  request.options.method = SearchMethod::kPaper;
  const auto paper = Find(request);
  ASSERT_TRUE(ours.ok() && paper.ok());
  ExpectSound(request, *paper);
  EXPECT_EQ(paper->timing.verdict, Verdict::kFaster);
  EXPECT_EQ(paper->graph.digest(), ours->graph.digest());
  EXPECT_EQ(paper->cell_graphs, 0);
}

TEST_F(SearchTest, WithoutRewritesOnlyThePlanIsSearched) {
  SearchRequest request = Request(kTwoProducts, kReassociate);
  request.options.method = SearchMethod::kNoRewrites;
  const auto result = Find(request);
  ASSERT_TRUE(result.ok());
  ExpectSound(request, *result);
  EXPECT_EQ(result->graphs, 0);
  EXPECT_EQ(result->stop_reason, StopReason::kNone);
}

std::string KernelOf(const Plan& plan) { return plan.groups.at(0).kernel; }

// All groups of plans of kTwoProducts have one problem.
std::vector<KernelChoice> All(const Plan& plan, const std::string& kernel) {
  std::vector<KernelChoice> choices;
  for (size_t g = 0; g < plan.groups.size(); ++g) choices.push_back({static_cast<int>(g), kernel});
  return choices;
}

TEST_F(SearchTest, CandidatesBeginWithTheKernelsOfTheRefinedInput) {
  const SearchRequest request = Request(kTwoProducts, kReassociate);
  measurer_.refine = [&](const Candidate& candidate) {
    const bool is_input = candidate.graph.digest() == request.input.digest();
    return All(candidate.plan, is_input ? "inside" : KernelOf(candidate.plan));
  };
  const auto result = Find(request);
  ASSERT_TRUE(result.ok()) << Message(result.status());
  ExpectSound(request, *result);
  EXPECT_EQ(result->timing.verdict, Verdict::kFaster);
  EXPECT_EQ(KernelOf(result->input_plan), "inside");
  EXPECT_EQ(KernelOf(result->plan), "inside");
  ASSERT_THAT(measurer_.refine_calls, SizeIs(2));
  EXPECT_EQ(KernelOf(measurer_.refine_calls[1].plan), "inside");
  EXPECT_EQ(result->plans_refined, 2);
}

TEST_F(SearchTest, FinalistsAreRefinedBeforeTheyAreTimed) {
  const SearchRequest request = Request(kTwoProducts, kReassociate);
  measurer_.refine = [&](const Candidate& candidate) {
    const bool is_input = candidate.graph.digest() == request.input.digest();
    return All(candidate.plan, is_input ? "fake" : "last");
  };
  const auto result = Find(request);
  ASSERT_TRUE(result.ok()) << Message(result.status());
  EXPECT_EQ(KernelOf(result->input_plan), "fake");
  EXPECT_EQ(KernelOf(result->plan), "last");
  EXPECT_EQ(KernelOf(measurer_.plan_calls.back()[1].plan), "last");
}

TEST_F(SearchTest, ARefinementThatFailsChangesNothing) {
  const struct {
    Status failure;
    std::vector<std::string> warnings;
  } kCases[] = {
      {Err(StatusCode::kUnimplemented, "an older worker"), {}},
      {Err(StatusCode::kUnavailable, "no worker"), {"refining kernels: no worker"}},
  };
  for (const auto& c : kCases) {
    const SearchRequest request = Request(kTwoProducts, kReassociate);
    measurer_.refine = [&](const Candidate&) { return c.failure; };
    const auto result = Find(request);
    ASSERT_TRUE(result.ok()) << Message(result.status());
    ExpectSound(request, *result);
    EXPECT_EQ(result->timing.verdict, Verdict::kFaster);
    EXPECT_EQ(KernelOf(result->plan), "fake");
    EXPECT_EQ(result->warnings, c.warnings);
  }
}

TEST_F(SearchTest, NothingIsRefinedBeyondTheLimits) {
  SearchRequest request = Request(kTwoProducts, kReassociate);
  const auto refined = [&](const SearchLimits& limits) {
    request.options.limits = limits;
    measurer_.refine_calls.clear();
    EXPECT_TRUE(Find(request).ok());
    return measurer_.refine_calls.size();
  };
  EXPECT_EQ(refined({}), 2u);
  EXPECT_EQ(refined({.refines_max = 1}), 1u);
  EXPECT_EQ(refined({.refines_max = 0}), 0u);
  // Too little time to begin, and the clock stands still.
  EXPECT_EQ(refined({.time_max = Nanos{1}}), 0u);
}

// Groups and plans take a given time by the clock; entries not reached in time are cancelled.
class SlowMeasurer : public FakeMeasurer {
 public:
  SlowMeasurer(FakeClock& clock, Nanos group_takes, Nanos plan_takes)
      : FakeMeasurer(TestSpec()),
        clock_(clock),
        group_takes_(group_takes),
        plan_takes_(plan_takes) {}
  void EndBy(Nanos until) override { until_ = until; }
  std::vector<StatusOr<Measurement>> MeasureGroups(
      const std::vector<GroupProblem>& problems) override {
    std::vector<StatusOr<Measurement>> results;
    for (const GroupProblem& problem : problems) {
      if (const Status up = TimeUp(); !up.ok()) {
        results.push_back(up);
        continue;
      }
      clock_.Advance(group_takes_);
      results.push_back(FakeMeasurer::MeasureGroups({problem})[0]);
    }
    return results;
  }
  StatusOr<std::vector<PlanTiming>> MeasurePlans(const std::vector<Candidate>& candidates,
                                                 Effort effort) override {
    AG_LET(std::vector<PlanTiming> timings, FakeMeasurer::MeasurePlans(candidates, effort));
    for (size_t i = 0; i < timings.size(); ++i) {
      if (i > 1 && !TimeUp().ok()) {
        timings[i].status = TimeUp();
      } else {
        clock_.Advance(plan_takes_);
      }
    }
    return timings;
  }

 private:
  Status TimeUp() const {
    if (clock_.Now() < until_) return OkStatus();
    return Err(StatusCode::kCancelled, "time is up");
  }

  FakeClock& clock_;
  const Nanos group_takes_, plan_takes_;
  Nanos until_ = Nanos::max();
};

constexpr Nanos kMs{1'000'000};

// Returns a graph with a dozen groups in its cover, as many alternatives, and places for rewrites.
std::string ManyGroups() {
  std::string text = "input x0 f32[64,64]\n";
  int size = 64;
  for (int i = 0; i < 6; ++i, size += 8) {
    text += fmt::format("v{} = const f32[{},{}] seed {}\n", i, size, size, 2 * i);
    text += fmt::format("w{} = const f32[{},{}] seed {}\n", i, size, size + 8, 2 * i + 1);
    text += fmt::format("x{} = relu(matmul(matmul(x{}, v{}), w{}))\n", i + 1, i, i, i);
  }
  return text + "output \"y\" = tanh(x6)\n";
}

TEST_F(SearchTest, HoweverSlowTheMachineThereAreRoundsAndItEndsInTime) {
  SearchRequest request = Request(ManyGroups(), kReassociate);
  request.options.limits.time_max = 10'000 * kMs;
  request.options.limits.comparison_max = 4'000 * kMs;
  int alternatives = 1000;
  for (const Nanos group_takes : {1 * kMs, 50 * kMs, 200 * kMs, 500 * kMs, 3'000 * kMs}) {
    SCOPED_TRACE(testing::Message() << group_takes / kMs << " ms a group");
    const Nanos plan_takes = 200 * kMs;
    FakeClock clock;
    SlowMeasurer measurer(clock, group_takes, plan_takes);
    const auto result = FindPlan(request, measurer, clock);
    ASSERT_TRUE(result.ok()) << Message(result.status());
    ExpectSound(request, *result);
    EXPECT_EQ(result->timing.verdict, Verdict::kFaster);
    EXPECT_GE(result->rounds, 1);
    EXPECT_GT(result->expansions, 0);
    EXPECT_LE(clock.Now(), 14'000 * kMs + plan_takes) << "what has begun is ended";
    EXPECT_LE(result->input_alternatives, alternatives);
    alternatives = result->input_alternatives;
  }
  EXPECT_EQ(alternatives, 0) << "given up first";
}

TEST_F(SearchTest, PlansThatDoNotFitAreNotTimedAndTheSearchSaysTime) {
  SearchRequest request = Request(ManyGroups(), kReassociate);
  request.options.limits.time_max = 10'000 * kMs;
  FakeClock clock;
  SlowMeasurer measurer(clock, 1 * kMs, 1'500 * kMs);
  const auto result = FindPlan(request, measurer, clock);
  ASSERT_TRUE(result.ok()) << Message(result.status());
  EXPECT_EQ(result->stop_reason, StopReason::kTime);
  EXPECT_LT(result->plans_timed, 7);
  EXPECT_GT(result->plans_timed, 0);
  EXPECT_EQ(result->timing.verdict, Verdict::kFaster);
  for (const std::string& warning : result->warnings) {
    EXPECT_EQ(warning.find("time is up"), std::string::npos) << warning;
  }
}

TEST_F(SearchTest, TheUnfusedPlanIsLeftOutOfShortFinalComparisons) {
  SearchRequest request = Request(kTwoProducts, kReassociate);
  for (const bool is_short : {false, true}) {
    request.options.limits.comparison_max = (is_short ? 3'000 : 30'000) * kMs;
    request.options.limits.time_max = 3'000 * kMs;
    FakeClock clock;
    SlowMeasurer measurer(clock, 1 * kMs, 900 * kMs);
    const auto result = FindPlan(request, measurer, clock);
    ASSERT_TRUE(result.ok()) << Message(result.status());
    EXPECT_EQ(result->unfused_timing.status.ok(), !is_short);
  }
}

// Timing the input and its rivals takes all the time that there is.
TEST_F(SearchTest, WithoutTimeForTheFinalComparisonTheRankingDecides) {
  const SearchRequest base = Request(kTwoProducts, kReassociate);
  for (const int64_t plan_ms : {600, 900, 1'200}) {
    SearchRequest request = base;
    request.options.limits.time_max = 3'000 * kMs;
    request.options.limits.comparison_max = 500 * kMs;
    FakeClock clock;
    SlowMeasurer measurer(clock, 1 * kMs, plan_ms * kMs);
    const auto result = FindPlan(request, measurer, clock);
    ASSERT_TRUE(result.ok()) << Message(result.status());
    ExpectSound(request, *result);
    EXPECT_GT(result->plans_timed, 0);
    EXPECT_EQ(result->timing.verdict, Verdict::kFaster) << plan_ms;
    EXPECT_EQ(measurer.plan_efforts.back(), Measurer::Effort::kRanking);
  }
}

// The counts tell what was cut, so it does not matter where and why.
TEST_F(SearchTest, ASearchWhoseMeasuringWasCutIsReplayedByItsCounts) {
  SearchRequest request = Request(ManyGroups(), kReassociate);
  int cut = 0;
  for (const int64_t group_ms : {10, 90, 170, 400, 900}) {
    for (const int64_t plan_ms : {10, 300, 900}) {
      SCOPED_TRACE(testing::Message() << group_ms << " " << plan_ms);
      request.options.limits = {.time_max = 10'000 * kMs};
      FakeClock clock;
      SlowMeasurer measurer(clock, group_ms * kMs, plan_ms * kMs);
      const auto timed = FindPlan(request, measurer, clock);
      ASSERT_TRUE(timed.ok()) << Message(timed.status());
      cut += timed->stop_reason == StopReason::kTime;
      request.options.limits = ReplayLimits(request.options.limits, *timed);
      const auto replay = Find(request);
      ASSERT_TRUE(replay.ok()) << Message(replay.status());
      EXPECT_EQ(EncodePlan(timed->plan), EncodePlan(replay->plan));
      EXPECT_EQ(timed->graph.digest(), replay->graph.digest());
      EXPECT_EQ(timed->groups_measured, replay->groups_measured);
      EXPECT_EQ(timed->plans_timed, replay->plans_timed);
    }
  }
  EXPECT_GT(cut, 5);
}

TEST_F(SearchTest, WhateverTheNoiseTheAnswerIsTheInputOrAMeasuredWinner) {
  SearchRequest request =
      Request(kSixProducts, std::string(kReassociate) + std::string(kReluTwice));
  request.options.limits = {.rounds_max = 2, .expansions_max = 10, .candidates_max = 3};
  measurer_.noise = 0.1;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    measurer_.random = Random(seed);
    const auto result = Find(request);
    ASSERT_TRUE(result.ok()) << "seed " << seed << ": " << Message(result.status());
    SCOPED_TRACE(seed);
    ExpectSound(request, *result);
  }
}

TEST_F(SearchTest, ARuleOfClassFiniteIsOffUnderStrict) {
  SearchRequest request = Request(kTwoProducts,
                                  "matmul-reassociate [finite]: matmul(matmul(x, v), w)"
                                  " => matmul(x, matmul(v, w)) if const(v), const(w)\n");
  request.policy.nonfinite_strict = true;
  const auto result = Find(request);
  ASSERT_TRUE(result.ok()) << Message(result.status());
  EXPECT_EQ(result->graphs, 0);
}

TEST_F(SearchTest, SeveralStreamsOfTheInputItselfMayWin) {
  measurer_ = FakeMeasurer(TestSpec(/*streams_max=*/2));
  // These groups do not depend on cores, so two streams halve the time.
  measurer_.group_ns = [](const GroupProblem&) { return 1e5; };
  const SearchRequest request = Request(
      "input x f32[64,64]\nv = const f32[64,64] seed 1\nw = const f32[64,64] seed 2\n"
      "output \"p\" = matmul(x, v)\noutput \"q\" = matmul(x, w)\n",
      "");
  const auto result = Find(request);
  ASSERT_TRUE(result.ok()) << Message(result.status());
  ExpectSound(request, *result);
  EXPECT_EQ(result->timing.verdict, Verdict::kFaster);
  EXPECT_EQ(result->graph.digest(), request.input.digest());
  EXPECT_THAT(result->plan.streams, SizeIs(2));
  EXPECT_THAT(result->rewrites, IsEmpty());
}

TEST_F(SearchTest, ProgressTellsStagesAndTheBest) {
  SearchRequest request = Request(kTwoProducts, kReassociate);
  std::vector<std::string> stages;
  double best = 0;
  request.on_progress = [&](const SearchProgress& progress) {
    stages.push_back(progress.stage);
    best = progress.best_speedup;
  };
  ASSERT_TRUE(Find(request).ok());
  for (const char* stage : {"measuring groups", "rewriting", "measuring plans"}) {
    EXPECT_THAT(stages, Contains(stage));
  }
  EXPECT_GT(best, 1.2);
}

}  // namespace
}  // namespace ag
