#include "server/pipeline/portable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/text_form.h"

namespace ag {
namespace {

using ::testing::ElementsAre;

// Rules that each turn one kind of operator into another; `second` needs the result of `first`.
constexpr char kRules[] =
    "first [exact]: relu(neg(x)) => abs(relu(x))\n"
    "second [exact]: abs(relu(x)) => sigmoid(x)\n"
    "other [exact]: tanh(x) => exp(x)\n";

RuleSet Rules() { return *RuleSet::Parse(kRules, "test.rules"); }

Graph Input() {
  return *ParseGraph(
      "input x f32[2]\n"
      "output y = add(relu(neg(x)), add(tanh(x), tanh(sqrt(x))))\n");
}

int Count(const Graph& graph, OpKind op) {
  int count = 0;
  for (const Node& node : graph.nodes()) count += node.op == op;
  return count;
}

// A runtime in which an operator takes the time in the table, any other operator 1, and a gain of
// more than a hundredth is FASTER.
struct FakeRuntime {
  std::map<OpKind, double> cost;
  double model_cost = 0;  // The cost of the model as it came.
  int trials = 0;

  double CostOf(const Graph& graph) const {
    double sum = 0;
    for (const Node& node : graph.nodes()) {
      const auto found = cost.find(node.op);
      sum += found == cost.end() ? 1 : found->second;
    }
    return sum;
  }
  StatusOr<Ratio> Try(const Graph* best, const Graph& candidate) {
    ++trials;
    const double ratio = (best == nullptr ? model_cost : CostOf(*best)) / CostOf(candidate);
    return Ratio{ratio, ratio, ratio};
  }
};

std::vector<std::string> VerdictsOf(const PortableResult& result) {
  std::vector<std::string> names;
  for (const v1::PortableStep& step : result.steps) {
    names.push_back(fmt::format("{}{} {}/{} {}", step.kept() ? "+" : "-", step.rule(),
                                step.applied(), step.wanted(), step.reason()));
  }
  return names;
}

class PortableTest : public ::testing::Test {
 protected:
  PortableRequest Request(std::vector<TrailStep> trail) {
    if (runtime_.model_cost == 0) runtime_.model_cost = runtime_.CostOf(Input());
    PortableRequest request;
    request.model = request.input = Input();
    request.trail = std::move(trail);
    request.rules = &rules_;
    request.winner = Winner(request.trail);
    request.try_graph = [this](const Graph* best, const Graph& candidate, const std::string&) {
      return runtime_.Try(best, candidate);
    };
    return request;
  }
  // Returns the graph that the whole trail leads to.
  std::optional<Graph> Winner(const std::vector<TrailStep>& trail) const {
    Graph graph = Input();
    for (const TrailStep& step : trail) graph = ApplyRule(graph, step, rules_)->graph;
    return graph.digest() == Input().digest() ? std::nullopt : std::optional(graph);
  }
  PortableResult Run(std::vector<TrailStep> trail) {
    return *KeepWhatHelps(Request(std::move(trail)));
  }
  const RuleSet rules_ = Rules();
  FakeRuntime runtime_;
};

TEST_F(PortableTest, RulesAreAppliedAtSoManyPlaces) {
  for (const int count : {0, 1, 2}) {
    const Applied applied = *ApplyRule(Input(), {"other", count}, rules_);
    EXPECT_EQ(applied.count, count);
    EXPECT_EQ(Count(applied.graph, OpKind::kExp), count);
  }
  EXPECT_EQ(ApplyRule(Input(), {"other", 9}, rules_)->count, 2);
  EXPECT_EQ(ApplyRule(Input(), {"second", 1}, rules_)->count, 0);
  EXPECT_EQ(ApplyRule(Input(), {"no-such-rule", 1}, rules_)->count, 0);
}

// A place that leads back to an earlier graph is not counted.
TEST_F(PortableTest, ARuleThatLeadsBackEnds) {
  const RuleSet swap = *RuleSet::Parse("swap [exact]: add(x, y) => add(y, x)\n", "test.rules");
  const Graph graph = *ParseGraph("input x f32[2]\ninput z f32[2]\noutput y = add(x, z)\n");
  EXPECT_LE(ApplyRule(graph, {"swap", 5}, swap)->count, 1);
}

TEST_F(PortableTest, OnlyWhatIsFasterStays) {
  runtime_.cost = {{OpKind::kExp, 0.5}, {OpKind::kAbs, 3}};
  const PortableResult result = Run({{"first", 1}, {"other", 2}});
  EXPECT_THAT(VerdictsOf(result), ElementsAre("-first 1/1 NO_GAIN_FOUND", "+other 2/2 FASTER",
                                              "-winner 3/3 NO_GAIN_FOUND"));
  ASSERT_TRUE(result.best.has_value());
  EXPECT_EQ(Count(*result.best, OpKind::kExp), 2);
  EXPECT_EQ(Count(*result.best, OpKind::kAbs), 0);
}

// All of a rule's places are one step, and its places that appear later are another.
TEST_F(PortableTest, ARuleThatIsKeptGoesOnLater) {
  runtime_.cost = {{OpKind::kExp, 0.5}};
  EXPECT_THAT(VerdictsOf(Run({{"other", 2}})), ElementsAre("+other 2/2 FASTER"));
  EXPECT_EQ(runtime_.trials, 1);
  runtime_.cost = {{OpKind::kSigmoid, 0.1}, {OpKind::kAbs, 0.9}};
  EXPECT_THAT(VerdictsOf(Run({{"second", 1}, {"first", 1}})),
              ElementsAre("+first 1/1 FASTER", "+second 1/1 FASTER"));
}

TEST_F(PortableTest, WhatPaysTogetherIsFoundTogether) {
  runtime_.cost = {{OpKind::kSigmoid, 0.1}};
  runtime_.cost[OpKind::kAbs] = 2;
  const PortableResult result = Run({{"first", 1}, {"second", 1}});
  EXPECT_THAT(VerdictsOf(result),
              ElementsAre("-first 1/1 NO_GAIN_FOUND", "-second 0/1 its places are gone",
                          "+winner 2/2 FASTER"));
  EXPECT_EQ(Count(*result.best, OpKind::kSigmoid), 1);
}

TEST_F(PortableTest, NothingHelps) {
  const PortableResult result = Run({{"first", 1}, {"old-rule", 2}});
  EXPECT_THAT(VerdictsOf(result), ElementsAre("-first 1/1 NO_GAIN_FOUND",
                                              "-old-rule 0/2 this program does not have the rule"));
  EXPECT_FALSE(result.best.has_value());
  EXPECT_TRUE(Run({}).steps.empty());
}

// Rewrites are applied to the cleaned-up input but measured against the model as it came.
TEST_F(PortableTest, TheCleanUpIsAStep) {
  PortableRequest request = Request({{"other", 2}});
  request.model = *ParseGraph("input x f32[2]\noutput y = relu(neg(x))\n");
  runtime_.cost = {{OpKind::kExp, 0.5}};
  runtime_.model_cost = runtime_.CostOf(Input()) - 0.5;
  const PortableResult result = *KeepWhatHelps(request);
  EXPECT_THAT(VerdictsOf(result), ElementsAre("-clean-up 1/1 NO_GAIN_FOUND", "+other 2/2 FASTER"));
  runtime_.model_cost = 100;
  EXPECT_THAT(VerdictsOf(*KeepWhatHelps(request)),
              ElementsAre("+clean-up 1/1 FASTER", "+other 2/2 FASTER"));
}

TEST_F(PortableTest, StopsWhenAsked) {
  runtime_.cost = {{OpKind::kExp, 0.5}};
  PortableRequest request = Request({{"other", 2}, {"first", 1}});
  request.stop = [this] { return runtime_.trials > 0; };
  const PortableResult result = *KeepWhatHelps(request);
  EXPECT_TRUE(result.stopped);
  EXPECT_THAT(VerdictsOf(result), ElementsAre("+other 2/2 FASTER"));

  request.stop = nullptr;
  for (const StatusCode code : {StatusCode::kCancelled, StatusCode::kDeadlineExceeded}) {
    request.try_graph = [&](const Graph*, const Graph&, const std::string&) -> StatusOr<Ratio> {
      return Err(code, "interrupted");
    };
    EXPECT_TRUE(KeepWhatHelps(request)->stopped);
  }
  request.try_graph = [](const Graph*, const Graph&, const std::string&) -> StatusOr<Ratio> {
    return Err(StatusCode::kInvalidArgument, "no");
  };
  EXPECT_EQ(Message(KeepWhatHelps(request).status()), "no");
}

}  // namespace
}  // namespace ag
