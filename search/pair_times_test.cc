#include "search/pair_times.h"

#include <gmock/gmock.h>

#include "plan/format/plan_codec.h"
#include "search/search.h"
#include "search/testing/fake_measurer.h"

namespace ag {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// Four independent products of one block each.
constexpr std::string_view kFourProducts = R"(
input x f32[64,64]
a = const f32[64,64] seed 1
b = const f32[64,32] seed 2
c = const f32[64,16] seed 3
d = const f32[64,48] seed 4
output "p" = matmul(x, a)
output "q" = matmul(x, b)
output "r" = matmul(x, c)
output "s" = matmul(x, d)
)";

DeviceSpec Gpu() {
  DeviceSpec spec = TestSpec(/*streams_max=*/4);
  spec.cores = 8;
  spec.block_outputs = 4096;
  return spec;
}

class PairTimesTest : public testing::Test {
 protected:
  PairTimesTest() {
    // Times that do not depend on cores, as launches of small kernels.
    measurer_.group_ns = [](const GroupProblem& problem) {
      return 1e5 + static_cast<double>(problem.graph.type(problem.graph.outputs()[0].edge).Bytes());
    };
  }
  SearchResult Find(std::string_view graph = kFourProducts) {
    SearchRequest request{.input = TestGraph(graph), .spec = measurer_.spec()};
    request.environment = "device=test";
    request.options = options_;
    auto result = FindPlan(request, measurer_, clock_);
    AG_CHECK(result.ok());
    return *std::move(result);
  }
  int PairsAsked() const {
    int pairs = 0;
    for (const auto& call : measurer_.pair_calls) pairs += static_cast<int>(call.size());
    return pairs;
  }

  FakeMeasurer measurer_{Gpu()};
  FakeClock clock_;
  SearchOptions options_;
};

TEST_F(PairTimesTest, FindsHowGroupsShareTheDevice) {
  for (const double overlap : {0.3, 0.6, 1.0}) {
    measurer_.overlap = overlap;
    measurer_.pair_calls.clear();
    const SearchResult result = Find();
    EXPECT_DOUBLE_EQ(result.overlap, overlap);
    EXPECT_EQ(result.pairs_measured, 6) << "of four groups";
    EXPECT_EQ(PairsAsked(), 6);
    EXPECT_EQ(result.pairs_failed, 0);
    // The prediction equals the measurement.
    EXPECT_EQ(result.timing.verdict, Verdict::kFaster);
    EXPECT_EQ(result.plan.streams.size(), 4u) << overlap;
    EXPECT_NEAR(result.estimate_ns, result.timing.latency.median_ns, 1e-6 * result.estimate_ns);
  }
}

TEST_F(PairTimesTest, AnUncalibratedPredictionIsFarOff) {
  measurer_.overlap = 0.3;
  options_.limits.pairs_max = 0;
  const SearchResult result = Find();
  EXPECT_EQ(result.overlap, 1);
  EXPECT_EQ(result.pairs_measured, 0);
  EXPECT_THAT(measurer_.pair_calls, IsEmpty());
  EXPECT_LT(result.estimate_ns, 0.6 * result.timing.latency.median_ns);
}

TEST_F(PairTimesTest, GroupsThatRunInTurnStayOnOneStream) {
  measurer_.overlap = 0;
  const SearchResult result = Find();
  EXPECT_EQ(result.overlap, 0);
  EXPECT_EQ(result.plan.streams.size(), 1u);
  EXPECT_EQ(result.estimate_ns, result.input_estimate_ns);
}

// By their blocks they run beside each other; by measurement each keeps all cores busy.
TEST_F(PairTimesTest, MeasuredSharesCount) {
  measurer_.active_cores = [](const GroupProblem&) { return 8; };
  EXPECT_EQ(Find().plan.streams.size(), 1u);
  measurer_.active_cores = [](const GroupProblem&) { return 2; };
  EXPECT_EQ(Find().plan.streams.size(), 4u);
  measurer_.active_cores = [](const GroupProblem&) { return 9; };
  SearchRequest request{.input = TestGraph(kFourProducts), .spec = measurer_.spec()};
  EXPECT_EQ(FindPlan(request, measurer_, clock_)->groups_failed, 4) << "the device has 8";
}

TEST_F(PairTimesTest, TheLimitHoldsAndTheLongestComeFirst) {
  options_.limits.pairs_max = 2;
  measurer_.overlap = 0.6;
  const SearchResult result = Find();
  ASSERT_THAT(measurer_.pair_calls, ElementsAre(SizeIs(2)));
  EXPECT_EQ(result.pairs_measured, 2);
  EXPECT_DOUBLE_EQ(result.overlap, 0.6);
  // The three widest outputs are the longest groups.
  for (const PairProblem& pair : measurer_.pair_calls[0]) {
    for (const GroupProblem& group : pair.groups) {
      EXPECT_GE(group.graph.type(group.graph.outputs()[0].edge).shape[1], 32);
    }
    EXPECT_EQ(pair.kernels[0], "fake");
  }
}

TEST_F(PairTimesTest, NoneWhereStreamsHaveCoresOfTheirOwn) {
  measurer_ = FakeMeasurer(TestSpec(/*streams_max=*/2));
  measurer_.group_ns = [](const GroupProblem&) { return 1e5; };
  const SearchResult result = Find(
      "input x f32[64,64]\nv = const f32[64,64] seed 1\nw = const f32[64,64] seed 2\n"
      "output p = matmul(x, v)\noutput q = matmul(x, w)\n");
  EXPECT_EQ(result.plan.streams.size(), 2u);
  EXPECT_THAT(measurer_.pair_calls, IsEmpty());
}

TEST_F(PairTimesTest, AFailedPairCostsOnlyItself) {
  measurer_.pair_failure = Err(StatusCode::kInternal, "no");
  const SearchResult result = Find();
  EXPECT_EQ(result.overlap, 1);
  EXPECT_EQ(result.pairs_failed, 6);
  EXPECT_EQ(PairsAsked(), 6) << "none is asked for again";
  EXPECT_EQ(result.plan.streams.size(), 4u);
  EXPECT_THAT(result.warnings, ElementsAre("two groups together: no"));
}

// As at the end of a search: nothing is known about these pairs, and a replay requests none of
// them.
TEST_F(PairTimesTest, ACancelledPairIsNotAsked) {
  measurer_.pair_failure = Err(StatusCode::kCancelled, "not measured: cancelled");
  const SearchResult result = Find();
  EXPECT_EQ(result.pairs_failed, 0);
  EXPECT_EQ(ReplayLimits(options_.limits, result).pairs_max, 0);
  EXPECT_THAT(result.warnings, IsEmpty());
}

TEST_F(PairTimesTest, AReplayGivesTheSamePlan) {
  measurer_.overlap = 0.45;
  options_.limits.pairs_max = 3;
  const SearchResult first = Find();
  options_.limits = ReplayLimits(options_.limits, first);
  EXPECT_EQ(options_.limits.pairs_max, 3);
  const SearchResult second = Find();
  EXPECT_EQ(EncodePlan(second.plan), EncodePlan(first.plan));
  EXPECT_EQ(second.overlap, first.overlap);
}

// A Measurer that does not time pairs works as before, without a warning.
TEST_F(PairTimesTest, PairsNeedNotBeOffered) {
  measurer_.pair_failure = Err(StatusCode::kUnimplemented, "not here");
  const SearchResult result = Find();
  EXPECT_THAT(result.warnings, IsEmpty());
  EXPECT_EQ(result.plan.streams.size(), 4u);
}

}  // namespace
}  // namespace ag
