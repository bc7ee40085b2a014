#include "plan/schedule/plan_estimates.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "plan/testing/testing.h"

namespace ag {
namespace {

// Measured times by the first operator of a group; one without a time has failed.
class TimesByOperator : public GroupTimes {
 public:
  explicit TimesByOperator(std::map<OpKind, double> ns) : ns_(std::move(ns)) {}
  GroupTime Time(const GroupProblem& problem) override {
    for (const Node& node : problem.graph.nodes()) {
      const auto it = ns_.find(node.op);
      if (it != ns_.end()) return {.ns = it->second, .state = TimeState::kMeasured};
    }
    return {.state = TimeState::kFailed, .failure = Err(StatusCode::kInternal, "no time")};
  }

 private:
  std::map<OpKind, double> ns_;
};

StatusOr<PlanEstimates> EstimatesOn(int streams, std::map<OpKind, double> ns) {
  const Graph graph = GraphOf("input x f32[4]\na = exp(x)\noutput add(relu(a), neg(a))\n");
  TimesByOperator times(std::move(ns));
  const Policy policy;
  AG_LET(const TimedPlan plan,
         MakeTimedPlan({graph, SmallSpec(), policy, {.grouped = false}, streams}, times));
  return EstimatesOf(graph, plan, 0.25);
}

const std::map<OpKind, double> kTimes = {
    {OpKind::kExp, 100}, {OpKind::kRelu, 200}, {OpKind::kNeg, 300}, {OpKind::kAdd, 50}};

// The longest path is exp, neg, add.
constexpr double kPathNs = 100 + 300 + 50;

TEST(PlanEstimates, OfADiamondOnOneStream) {
  const auto estimates = EstimatesOn(1, kTimes);
  ASSERT_TRUE(estimates.ok()) << Message(estimates.status());
  EXPECT_DOUBLE_EQ(estimates->sum_ns, 650);
  EXPECT_DOUBLE_EQ(estimates->critical_path_ns, kPathNs);
  EXPECT_DOUBLE_EQ(estimates->mixed_ns, 650 + 0.25 * kPathNs);
  EXPECT_DOUBLE_EQ(estimates->makespan_ns, 650);
  EXPECT_EQ(estimates->groups, 4);
}

// The shorter branch runs beside the longer one, and an event, which takes 10 ns, lies between
// streams twice: before the branch on the other stream, which ends early, and behind it.
TEST(PlanEstimates, TheMakespanAloneSeesStreams) {
  const auto estimates = EstimatesOn(2, kTimes);
  ASSERT_TRUE(estimates.ok()) << Message(estimates.status());
  EXPECT_DOUBLE_EQ(estimates->sum_ns, 650);
  EXPECT_DOUBLE_EQ(estimates->critical_path_ns, kPathNs);
  EXPECT_GE(estimates->makespan_ns, kPathNs);
  EXPECT_LE(estimates->makespan_ns, kPathNs + 20);
}

TEST(PlanEstimates, WithAFailedGroupThereAreNone) {
  const double none = std::numeric_limits<double>::infinity();
  const auto estimates =
      EstimatesOn(1, {{OpKind::kExp, 100}, {OpKind::kNeg, 300}, {OpKind::kAdd, 50}});
  ASSERT_TRUE(estimates.ok()) << Message(estimates.status());
  EXPECT_EQ(estimates->sum_ns, none);
  EXPECT_EQ(estimates->critical_path_ns, none);
  EXPECT_EQ(estimates->mixed_ns, none);
  EXPECT_EQ(estimates->makespan_ns, none);
  EXPECT_EQ(estimates->groups, 4);
}

}  // namespace
}  // namespace ag
