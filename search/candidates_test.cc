#include "search/candidates.h"

#include <gmock/gmock.h>

#include <set>

#include "plan/format/plan_codec.h"
#include "plan/format/plan_validate.h"
#include "search/testing/test_search.h"

namespace ag {
namespace {

using testing::SizeIs;

constexpr std::string_view kFourBranches = R"(
input x f32[64,64]
a = const f32[64,64] seed 1
b = const f32[64,64] seed 2
c = const f32[64,64] seed 3
d = const f32[64,64] seed 4
output "p" = matmul(x, a)
output "q" = matmul(x, b)
output "r" = matmul(x, c)
output "s" = matmul(x, d)
)";
constexpr std::string_view kChain = R"(
input x f32[64,64]
output "y" = neg(abs(neg(abs(x))))
)";

constexpr std::string_view kUnevenBranches = R"(
input x f32[64,64]
a = exp(x)
output "y" = add(relu(neg(a)), tanh(abs(sin(cos(a)))))
)";

class CandidatesTest : public testing::Test {
 protected:
  StatusOr<std::vector<PlanCandidate>> Plans(std::string_view graph, SearchOptions options = {}) {
    request_ = {.input = TestGraph(graph), .spec = spec_, .environment = "e", .options = options};
    return MakePlans(request_.input, TestSearch(request_, rules_, measurer_, clock_).setting);
  }

  // A group of 64 x 64 elements is one block, and takes as long on any stream.
  void TakeOneCorePerGroup() {
    spec_.block_outputs = 64 * 64;
    measurer_ = FakeMeasurer(spec_);
  }

  DeviceSpec spec_ = TestSpec(/*streams_max=*/4);
  FakeMeasurer measurer_{spec_};
  FakeClock clock_;
  RuleSet rules_;
  SearchRequest request_;
};

TEST_F(CandidatesTest, OneStreamIsAlwaysFirst) {
  const auto plans = Plans(kFourBranches);
  ASSERT_TRUE(plans.ok()) << Message(plans.status());
  EXPECT_EQ(UsedStreams((*plans)[0].plan), 1);
  EXPECT_EQ((*plans)[0].plan.environment, "e");
  EXPECT_LT((*plans)[0].makespan_ns, kNoTimeNs);
}

// Two halves that nobody timed look better than a whole that was timed, by the times of others.
TEST_F(CandidatesTest, AGroupThatWasMeasuredIsNotLeftForHalvesThatCannotBe) {
  constexpr std::string_view kThree = R"(
input x f32[64,64]
a = const f32[64,64] seed 1
b = const f32[64,128] seed 2
c = const f32[64,32] seed 3
output "p" = relu(matmul(x, a))
output "q" = relu(matmul(x, b))
output "r" = relu(matmul(x, c))
)";
  measurer_.group_ns = [&](const GroupProblem& problem) {
    const int64_t columns = problem.graph.type(problem.graph.outputs()[0].edge).shape[1];
    return RooflineNs(problem, spec_) * (columns == 32 ? 1.5 : 1.0);
  };
  const auto plans = Plans(kThree, {.limits = {.groups_max = 3}});
  ASSERT_TRUE(plans.ok()) << Message(plans.status());
  EXPECT_THAT((*plans)[0].plan.groups, SizeIs(3));
}

// Two graphs of which only the order of nodes differs, and a third.
TEST_F(CandidatesTest, OfGraphsWithEqualGroupsOnlyTheFirstIsPlanned) {
  constexpr std::string_view kTurned = R"(
input x f32[64,64]
c = const f32[64,64] seed 3
d = const f32[64,64] seed 4
a = const f32[64,64] seed 1
b = const f32[64,64] seed 2
r = matmul(x, c)
output "s" = matmul(x, d)
output "p" = matmul(x, a)
output "q" = matmul(x, b)
output "r" = r
)";
  request_ = {.input = TestGraph(kFourBranches), .spec = spec_, .options = {.streams_max = 1}};
  const std::vector<RankedGraph> graphs = {
      {TestGraph(kFourBranches), 1, 7}, {TestGraph(kTurned), 2, 8}, {TestGraph(kChain), 3, 9}};
  const CandidateOrigin origin{CandidateOrigin::Stage::kRound, 2};
  for (const auto method : {SearchMethod::kOurs, SearchMethod::kPaper}) {
    request_.options.method = method;
    TestSearch search(request_, rules_, measurer_, clock_);
    const std::vector<PlanCandidate> plans = MakePlansOf(graphs, origin, search.setting);
    std::vector<int> steps;
    for (const PlanCandidate& plan : plans) {
      steps.push_back(plan.step);
      EXPECT_EQ(plan.origin, origin);
    }
    const bool is_ours = method == SearchMethod::kOurs;
    EXPECT_EQ(steps, is_ours ? std::vector({7, 9}) : std::vector({7, 8, 9}));
    EXPECT_EQ(search.run.counts.candidates, std::ssize(steps));
  }
}

TEST_F(CandidatesTest, GroupsThatDoNotScaleGoOnAsManyStreamsAsThereAre) {
  measurer_.group_ns = [](const GroupProblem&) { return 1e5; };
  const auto plans = Plans(kFourBranches);
  ASSERT_TRUE(plans.ok()) << Message(plans.status());
  ASSERT_THAT(*plans, SizeIs(2));
  EXPECT_EQ(UsedStreams((*plans)[1].plan), 4);
  EXPECT_LT((*plans)[1].makespan_ns, (*plans)[0].makespan_ns / 2);
  EXPECT_TRUE(ValidatePlan(request_.input, (*plans)[1].plan, spec_).ok());
}

TEST_F(CandidatesTest, GroupsAreMeasuredOnTheCoresOfOneStream) {
  measurer_.group_ns = [](const GroupProblem&) { return 1e5; };
  ASSERT_TRUE(Plans(kFourBranches).ok());
  std::set<int> cores;
  for (const auto& call : measurer_.group_calls) {
    for (const GroupProblem& problem : call) cores.insert(problem.cores);
  }
  EXPECT_TRUE(cores.contains(1));  // Four streams share four cores.
}

TEST_F(CandidatesTest, GroupsThatScalePerfectlyStayOnOneStream) {
  measurer_.group_ns = [](const GroupProblem& problem) {
    return 4e5 / (problem.cores == 0 ? 4 : problem.cores);
  };
  const auto plans = Plans(kFourBranches);
  ASSERT_TRUE(plans.ok()) << Message(plans.status());
  EXPECT_THAT(*plans, SizeIs(1));
}

TEST_F(CandidatesTest, AChainStaysOnOneStream) {
  const auto plans = Plans(kChain);
  ASSERT_TRUE(plans.ok()) << Message(plans.status());
  EXPECT_THAT(*plans, SizeIs(1));
}

// Greedy keeps the longer branch on the stream of Exp, Opara's streams the first one: the longer
// one then begins an event of 100 ns later.
TEST_F(CandidatesTest, TheBestPlanOfAnotherSchedulerIsMeasuredWhenItIsClose) {
  TakeOneCorePerGroup();
  measurer_.group_ns = [](const GroupProblem&) { return 1e5; };
  const auto plans = Plans(kUnevenBranches);
  ASSERT_TRUE(plans.ok()) << Message(plans.status());
  ASSERT_THAT(*plans, SizeIs(3));
  EXPECT_NE(EncodePlan((*plans)[1].plan), EncodePlan((*plans)[2].plan));
  EXPECT_LE((*plans)[1].makespan_ns, (*plans)[2].makespan_ns);
  EXPECT_LE((*plans)[2].makespan_ns, kCloseSchedule * (*plans)[1].makespan_ns);
  for (const PlanCandidate& plan : *plans) {
    EXPECT_TRUE(ValidatePlan(request_.input, plan.plan, spec_).ok());
  }
}

TEST_F(CandidatesTest, APlanThatIsNotCloseIsNotMeasured) {
  TakeOneCorePerGroup();
  measurer_.group_ns = [](const GroupProblem&) { return 120.0; };  // 720 and 820 ns.
  const auto plans = Plans(kUnevenBranches);
  ASSERT_TRUE(plans.ok()) << Message(plans.status());
  ASSERT_THAT(*plans, SizeIs(2));
  EXPECT_DOUBLE_EQ((*plans)[1].makespan_ns, 720);
}

TEST_F(CandidatesTest, TheOptionsMayForbidStreams) {
  measurer_.group_ns = [](const GroupProblem&) { return 1e5; };
  const auto one = Plans(kFourBranches, {.streams_max = 1});
  ASSERT_TRUE(one.ok()) << Message(one.status());
  EXPECT_THAT(*one, SizeIs(1));
  const auto two = Plans(kFourBranches, {.streams_max = 2});
  ASSERT_TRUE(two.ok()) << Message(two.status());
  ASSERT_THAT(*two, SizeIs(2));
  EXPECT_EQ(UsedStreams((*two)[1].plan), 2);
}

TEST_F(CandidatesTest, AFailedGroupIsNoPlan) {
  measurer_.group_failure = [](const GroupProblem&) { return Err(StatusCode::kInternal, "no"); };
  EXPECT_EQ(ToString(Plans(kFourBranches).status()), "INTERNAL: group matmul: no");
}

TEST_F(CandidatesTest, AGroupThatFailsOnFewerCoresCostsOnlyTheStreams) {
  measurer_.group_ns = [](const GroupProblem&) { return 1e5; };
  measurer_.group_failure = [](const GroupProblem& problem) {
    const bool is_all = problem.cores == 0 || problem.cores == 4;
    return is_all ? OkStatus() : Err(StatusCode::kInternal, "no");
  };
  const auto plans = Plans(kFourBranches);
  ASSERT_TRUE(plans.ok()) << Message(plans.status());
  EXPECT_THAT(*plans, SizeIs(1));
}

}  // namespace
}  // namespace ag
