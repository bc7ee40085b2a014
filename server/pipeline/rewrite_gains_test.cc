#include "server/pipeline/rewrite_gains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rules/match/rule_clean_up.h"
#include "search/rewrite_walk.h"
#include "search/testing/fake_measurer.h"

namespace ag {
namespace {

using ::testing::ElementsAre;
using ::testing::FieldsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Each rule has one place in the model. On the device of the test each operator is a launch.
constexpr char kGainModel[] =
    "input x f32[64,64]\n"
    "output y = neg(neg(abs(abs(tanh(x)))))\n";
constexpr char kGainRules[] =
    "drop-neg [exact]: neg(neg(x)) => x\n"
    "drop-abs [exact]: abs(abs(x)) => abs(x)\n"
    "to-sigmoid [exact]: tanh(x) => relu(sqrt(x))\n"
    "behind [exact]: relu(sqrt(x)) => sqrt(x)\n"
    "back [exact]: relu(sqrt(x)) => tanh(x)\n";

class RewriteGainsTest : public ::testing::Test {
 protected:
  // A plan of the graph after the named rules, taken in turn.
  FoundPlan Take(const std::vector<std::string>& rules) {
    RewriteWalk walk(input_, rules_);
    FoundPlan plan;
    for (const std::string& name : rules) {
      for (const Rewrite& place : FindRewrites(walk.graph(), rules_)) {
        if (place.rule->name != name) continue;
        plan.steps.push_back({place, plan.steps.empty(), 10});
        break;
      }
      walk.GoTo(*walk.After(plan.steps.back().rewrite));
      const auto it = std::ranges::find(plan.rewrites, name, &AppliedRewrite::rule);
      AppliedRewrite& rewrite =
          it == plan.rewrites.end() ? plan.rewrites.emplace_back(AppliedRewrite{name}) : *it;
      ++rewrite.count;
      rewrite.gain_ns += 10;
    }
    plan.graph = walk.graph();
    RooflineTimes times(spec_);
    plan.plan = *MakePlan(plan.graph, spec_, policy_, times, {.mixed_layouts = true}, 1);
    return plan;
  }
  GainRequest Request() {
    return {input_, rules_, spec_, environment_, policy_, [this] { return stop_; }};
  }

  const DeviceSpec spec_ = TestSpec();
  FakeMeasurer measurer_{spec_};
  const RuleSet rules_ = TestRules(kGainRules);
  const Graph input_ = TestGraph(kGainModel);
  const Policy policy_;
  const Environment environment_ = "e";
  bool stop_ = false;
};

// Six launches of one size: with all rewrites tanh and abs are left. All groups take 100 ns.
TEST_F(RewriteGainsTest, AGainIsTheTimeWithoutTheRuleOverTheTimeWithIt) {
  measurer_.group_ns = [](const GroupProblem&) { return 100; };
  FoundPlan plan = Take({"drop-neg", "drop-abs"});
  ASSERT_TRUE(MeasureGains(Request(), measurer_, &plan).ok());
  ASSERT_THAT(plan.rewrites, SizeIs(2));
  const double all_ns = measurer_.SimulatedNs(plan);
  ASSERT_THAT(measurer_.plan_calls, SizeIs(1));
  ASSERT_THAT(measurer_.plan_calls[0], SizeIs(3));
  EXPECT_EQ(measurer_.plan_efforts[0], Measurer::Effort::kRanking);
  for (size_t i = 0; i < 2; ++i) {
    const double without_ns = measurer_.SimulatedNs(measurer_.plan_calls[0][i + 1]);
    ASSERT_TRUE(plan.rewrites[i].gain.has_value());
    EXPECT_NEAR(plan.rewrites[i].gain->median, without_ns / all_ns, 1e-9);
    EXPECT_LT(plan.rewrites[i].gain->low, plan.rewrites[i].gain->median);
    EXPECT_GT(plan.rewrites[i].gain->high, plan.rewrites[i].gain->median);
    EXPECT_THAT(plan.rewrites[i].also_left_out, IsEmpty());
    EXPECT_EQ(measurer_.plan_calls[0][i + 1].plan.environment, "e");
  }
  EXPECT_GT(plan.rewrites[0].gain->median, 1);
  EXPECT_EQ(measurer_.plan_calls[0][1].graph.digest(),
            TestGraph("input x f32[64,64]\noutput y = neg(neg(abs(tanh(x))))\n").digest());
}

TEST_F(RewriteGainsTest, WhatHasNoPlaceWithoutTheRuleIsSaid) {
  FoundPlan plan = Take({"to-sigmoid", "behind", "drop-neg"});
  ASSERT_TRUE(MeasureGains(Request(), measurer_, &plan).ok());
  ASSERT_THAT(plan.rewrites, SizeIs(3));
  EXPECT_THAT(plan.rewrites[0].also_left_out, ElementsAre("behind"));
  EXPECT_THAT(plan.rewrites[1].also_left_out, IsEmpty());
  EXPECT_THAT(plan.rewrites[2].also_left_out, IsEmpty());
  for (const AppliedRewrite& rewrite : plan.rewrites) EXPECT_TRUE(rewrite.gain) << rewrite.rule;
}

TEST_F(RewriteGainsTest, WhatIsNotTimedStaysAnEstimate) {
  FoundPlan plan = Take({"drop-neg", "drop-abs"});
  stop_ = true;
  ASSERT_TRUE(MeasureGains(Request(), measurer_, &plan).ok());
  EXPECT_THAT(measurer_.plan_calls, IsEmpty());
  stop_ = false;
  measurer_.call_failure = [](int) { return Err(StatusCode::kUnavailable, "the worker left"); };
  EXPECT_EQ(Message(MeasureGains(Request(), measurer_, &plan)), "the worker left");
  measurer_.call_failure = nullptr;
  measurer_.plan_failure = [&](const Candidate& candidate) {
    const bool is_rest = candidate.graph.digest() != plan.graph.digest();
    return is_rest ? Err(StatusCode::kCancelled, "the time was over") : OkStatus();
  };
  ASSERT_TRUE(MeasureGains(Request(), measurer_, &plan).ok());
  for (const AppliedRewrite& rewrite : plan.rewrites) {
    EXPECT_FALSE(rewrite.gain) << rewrite.rule;
    EXPECT_EQ(rewrite.gain_ns, 10);
  }
}

TEST_F(RewriteGainsTest, ARewriteAndTheOneThatUndoesItAreNotListed) {
  FoundPlan plan = Take({"to-sigmoid", "drop-neg", "back"});
  const Digest graph = plan.graph.digest();
  DropUndoneRewrites(Request(), &plan);
  EXPECT_THAT(plan.rewrites, ElementsAre(FieldsAre("drop-neg", 1, 10, ::testing::_, ::testing::_)));
  ASSERT_THAT(plan.steps, SizeIs(1));
  EXPECT_TRUE(plan.steps[0].begins_round);
  RewriteWalk walk(input_, rules_);
  ASSERT_TRUE(walk.Take(plan.steps).ok());
  EXPECT_EQ(walk.graph().digest(), graph);
  plan = Take({"to-sigmoid", "drop-neg", "behind"});
  DropUndoneRewrites(Request(), &plan);
  EXPECT_THAT(plan.rewrites, SizeIs(3));
}

}  // namespace
}  // namespace ag
