#include "server/pipeline/guilty_rewrite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/reference/evaluate.h"
#include "graph/text_form.h"
#include "plan/equivalence.h"
#include "rules/match/rule_clean_up.h"
#include "search/rewrite_walk.h"

namespace ag {
namespace {

using Outcome = GuiltyRewrite::Outcome;
using ::testing::ElementsAre;

// Each good rule has one place in the graphs here, and each bad one computes something else.
constexpr char kTrailRules[] =
    "good-neg [exact]: neg(neg(x)) => x\n"
    "good-relu [exact]: relu(relu(x)) => relu(x)\n"
    "good-abs [exact]: abs(abs(x)) => abs(x)\n"
    "bad-tanh [exact]: tanh(x) => sigmoid(x)\n"
    "bad-exp [exact]: exp(x) => relu(x)\n"
    "behind [exact]: abs(relu(sqrt(x))) => relu(sqrt(x))\n"
    "fine [rounding, clean-up]: add(x, neg(x)) => sub(x, x)\n"
    "spoilt [rounding, clean-up]: mul(x, {0.5}) => neg(x)\n"
    "spoilt-later [rounding, clean-up]: cos(sigmoid(x)) => sin(x)\n";

constexpr char kTrailModel[] =
    "input x f32[4]\n"
    "a = relu(relu(tanh(neg(neg(x)))))\n"
    "output y = exp(abs(abs(a)))\n";

class GuiltyRewriteTest : public ::testing::Test {
 protected:
  // Applies the named rules in turn, each at its first place.
  std::vector<RewriteStep> Trail(const std::vector<std::string>& rules) {
    RewriteWalk walk(input_, rules_);
    std::vector<RewriteStep> steps;
    for (const std::string& name : rules) {
      const std::vector<Rewrite> places = FindRewrites(walk.graph(), rules_);
      const auto is_it = [&](const Rewrite& place) { return place.rule->name == name; };
      const auto place = std::ranges::find_if(places, is_it);
      if (place == places.end()) {
        ADD_FAILURE() << name << " has no place in\n" << FormatGraph(walk.graph());
        return {};
      }
      steps.push_back({*place, steps.empty()});
      walk.GoTo(*walk.After(*place));
    }
    return steps;
  }
  void Use(std::string_view text) {
    model_ = *ParseGraph(text, &weights_);
    input_ = *CleanUp(model_, rules_);
  }
  std::vector<Tensor> Outputs(const Graph& graph) {
    std::vector<Tensor> inputs;
    for (const NodeId id : graph.inputs()) inputs.push_back(RandomTensor(graph.type({id, 0}), 7));
    return *Evaluate(graph, inputs, weights_);
  }
  std::optional<OutputError> Differs(const Graph& graph) {
    ++comparisons_;
    const OutputError error = CompareOutput(model_, 0, Outputs(model_)[0], Outputs(graph)[0]);
    if (IsEquivalent(error, 1e-3)) return std::nullopt;
    return error;
  }
  TrailRequest Request(std::vector<RewriteStep> steps) {
    return {.model = model_,
            .input = input_,
            .steps = std::move(steps),
            .rules = &rules_,
            .differs = [this](const Graph& graph) { return Differs(graph); },
            .stop = nullptr};
  }
  GuiltyRewrite Find(const std::vector<std::string>& rules) {
    const auto found = FindGuiltyRewrite(Request(Trail(rules)));
    EXPECT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->comparisons, comparisons_);
    return *found;
  }
  // The graph before is right and the one after is not, and the rewrite leads from one to the
  // other.
  void ExpectShows(const GuiltyRewrite& found) {
    EXPECT_FALSE(Differs(found.before)) << FormatGraph(found.before);
    const auto error = Differs(found.after);
    ASSERT_TRUE(error) << FormatGraph(found.after);
    EXPECT_EQ(error->max_rel, found.error.max_rel);
    EXPECT_EQ(found.error.name, "y");
    if (!found.rewrite) return;
    EXPECT_EQ(Apply(found.before, *found.rewrite)->digest(), found.after.digest());
  }

  const RuleSet rules_ = *RuleSet::Parse(kTrailRules, "test.rules");
  MemoryWeights weights_;
  Graph model_ = *ParseGraph(kTrailModel);
  Graph input_ = *CleanUp(model_, rules_);
  int comparisons_ = 0;
};

TEST_F(GuiltyRewriteTest, TheFirstIsWrong) {
  const GuiltyRewrite found = Find({"bad-tanh", "good-neg", "good-relu", "good-abs"});
  EXPECT_EQ(found.outcome, Outcome::kFound);
  EXPECT_EQ(found.rule, "bad-tanh");
  EXPECT_EQ(found.step, 1);
  EXPECT_FALSE(found.is_clean_up);
  ExpectShows(found);
}

TEST_F(GuiltyRewriteTest, TheLastIsWrong) {
  const GuiltyRewrite found = Find({"good-neg", "good-relu", "good-abs", "bad-exp"});
  EXPECT_EQ(found.rule, "bad-exp");
  EXPECT_EQ(found.step, 4);
  ExpectShows(found);
}

TEST_F(GuiltyRewriteTest, TheOnlyOneIsWrong) {
  const GuiltyRewrite found = Find({"bad-exp"});
  EXPECT_EQ(found.rule, "bad-exp");
  EXPECT_EQ(found.comparisons, 2);
  ExpectShows(found);
}

// A chain of many right rewrites around a wrong one takes about log2 comparisons of them.
TEST_F(GuiltyRewriteTest, ALongTrailTakesFewComparisons) {
  std::string x = "x";
  std::vector<std::string> rules;
  for (int i = 0; i < 40; ++i) {
    x = "neg(neg(sin(" + x + ")))";
    rules.emplace_back("good-neg");
  }
  rules.insert(rules.begin() + 27, "bad-exp");
  Use("input x f32[4]\noutput y = exp(" + x + ")\n");
  const GuiltyRewrite found = Find(rules);
  EXPECT_EQ(found.rule, "bad-exp");
  EXPECT_EQ(found.step, 28);
  EXPECT_LE(found.comparisons, 8);  // All, none, and log2(41).
  ExpectShows(found);
}

// One of two is found; without its rule the other one is.
TEST_F(GuiltyRewriteTest, OfTwoWrongOnesEachIsFound) {
  const std::vector<RewriteStep> steps =
      Trail({"good-neg", "bad-tanh", "good-relu", "bad-exp", "good-abs"});
  TrailRequest request = Request(steps);
  const GuiltyRewrite first = *FindGuiltyRewrite(request);
  EXPECT_EQ(first.rule, "bad-tanh");
  ExpectShows(first);
  const RuleSet rest = rules_.Without({first.rule}, /*strict=*/false);
  const ReplayedTrail replayed = *ReplayTrail({input_, steps, &rules_, input_, &rest});
  EXPECT_THAT(replayed.kept, ::testing::Contains(false).Times(1));
  ASSERT_EQ(replayed.steps.size(), 4u);
  request.steps = replayed.steps;
  request.rules = &rest;
  const GuiltyRewrite second = *FindGuiltyRewrite(request);
  EXPECT_EQ(second.rule, "bad-exp");
  ExpectShows(second);
}

TEST_F(GuiltyRewriteTest, TheCleanUpOfTheModelIsWrong) {
  Use("input x f32[4]\noutput y = mul(add(tanh(x), neg(tanh(x))), const f32[] {0.5})\n");
  // x - x is 0, and so is its negation: only a graph that is not 0 shows it.
  EXPECT_EQ(Find({}).outcome, Outcome::kNotOnTrail);
  comparisons_ = 0;
  Use("input x f32[4]\noutput y = add(mul(relu(relu(x)), const f32[] {0.5}), add(x, neg(x)))\n");
  for (const auto& rules : {std::vector<std::string>{}, {"good-relu"}}) {
    comparisons_ = 0;
    const GuiltyRewrite found = Find(rules);
    EXPECT_EQ(found.outcome, Outcome::kFound);
    EXPECT_TRUE(found.is_clean_up);
    EXPECT_EQ(found.rule, "spoilt");
    EXPECT_EQ(found.step, 0);
    EXPECT_FALSE(found.rewrite);
    ExpectShows(found);
  }
}

// The rewrite is right, and what it makes is spoilt by the clean-up that follows it.
TEST_F(GuiltyRewriteTest, TheCleanUpBehindARewriteIsWrong) {
  const RuleSet rules = *RuleSet::Parse(
      "good-neg [exact]: neg(neg(x)) => x\n"
      "spoilt [rounding, clean-up]: cos(sigmoid(x)) => sin(x)\n",
      "test.rules");
  model_ = input_ = *ParseGraph("input x f32[4]\noutput y = cos(neg(neg(sigmoid(x))))\n");
  TrailRequest request = Request({{FindRewrites(input_, rules).at(0), true}});
  request.rules = &rules;
  const GuiltyRewrite found = *FindGuiltyRewrite(request);
  EXPECT_EQ(found.rule, "spoilt");
  EXPECT_TRUE(found.is_clean_up);
  EXPECT_EQ(found.step, 1);
  ExpectShows(found);
}

TEST_F(GuiltyRewriteTest, WhatIsRightAtReplayIsNotOnTheTrail) {
  const GuiltyRewrite found = Find({"good-neg", "good-relu", "good-abs"});
  EXPECT_EQ(found.outcome, Outcome::kNotOnTrail);
  EXPECT_EQ(found.comparisons, 1);
}

TEST_F(GuiltyRewriteTest, AModelThatDiffersFromItselfIsTheDevicesFault) {
  Use("input x f32[4]\noutput y = neg(neg(add(x, neg(x))))\n");
  TrailRequest request = Request(Trail({"good-neg"}));
  request.differs = [](const Graph&) { return OutputError{.name = "y", .max_rel = 1}; };
  EXPECT_EQ(FindGuiltyRewrite(request)->outcome, Outcome::kModelItself);
}

TEST_F(GuiltyRewriteTest, StopsWhenTheTimeIsOver) {
  for (const int allowed : {0, 1, 2, 3}) {
    comparisons_ = 0;
    TrailRequest request = Request(Trail({"good-neg", "bad-tanh", "good-relu", "good-abs"}));
    request.stop = [&] { return comparisons_ >= allowed; };
    EXPECT_EQ(FindGuiltyRewrite(request)->outcome, Outcome::kStopped) << allowed;
    EXPECT_EQ(comparisons_, allowed);
  }
}

TEST_F(GuiltyRewriteTest, ErrorsAreReturned) {
  TrailRequest request = Request(Trail({"good-neg", "bad-tanh"}));
  request.differs = [this](const Graph& graph) -> StatusOr<std::optional<OutputError>> {
    if (comparisons_ == 1) return Err(StatusCode::kUnavailable, "no worker");
    return Differs(graph);
  };
  EXPECT_EQ(Message(FindGuiltyRewrite(request).status()), "no worker");
}

// --- Replay

std::vector<std::string> RulesOf(const std::vector<RewriteStep>& steps) {
  std::vector<std::string> names;
  for (const RewriteStep& step : steps) names.push_back(step.rewrite.rule->name);
  return names;
}

TEST_F(GuiltyRewriteTest, AReplayOfAllMakesTheSameGraph) {
  const std::vector<RewriteStep> steps = Trail({"good-relu", "bad-tanh", "good-neg", "bad-exp"});
  RewriteWalk walk(input_, rules_);
  ASSERT_TRUE(walk.Take(steps).ok());
  const ReplayedTrail replayed = *ReplayTrail({input_, steps, &rules_, input_, &rules_});
  EXPECT_EQ(replayed.graph.digest(), walk.graph().digest());
  EXPECT_THAT(replayed.kept, ::testing::Each(true));
}

// Places behind the one that is left out are found, and a replay's steps can be taken themselves.
TEST_F(GuiltyRewriteTest, WhatFollowsTheLeftOutOneIsKept) {
  const RuleSet rest = rules_.Without({"bad-tanh"}, /*strict=*/false);
  const std::vector<RewriteStep> steps = Trail({"bad-tanh", "good-neg", "good-relu", "good-abs"});
  const ReplayedTrail replayed = *ReplayTrail({input_, steps, &rules_, input_, &rest});
  EXPECT_THAT(RulesOf(replayed.steps), ElementsAre("good-neg", "good-relu", "good-abs"));
  EXPECT_FALSE(Differs(replayed.graph));
  RewriteWalk walk(input_, rest);
  ASSERT_TRUE(walk.Take(replayed.steps).ok());
  EXPECT_EQ(walk.graph().digest(), replayed.graph.digest());
  EXPECT_TRUE(replayed.steps[0].begins_round);
}

// The same by step and not by rule.
TEST_F(GuiltyRewriteTest, AStepIsLeftOutByItself) {
  const std::vector<RewriteStep> steps = Trail({"bad-tanh", "good-neg", "good-relu"});
  const ReplayedTrail replayed =
      *ReplayTrail({input_, steps, &rules_, input_, &rules_, {false, true, false}});
  EXPECT_THAT(RulesOf(replayed.steps), ElementsAre("bad-tanh", "good-relu"));
  EXPECT_THAT(replayed.kept, ElementsAre(true, false, true));
}

// A rewrite whose place the left-out one made has no place.
TEST_F(GuiltyRewriteTest, WhatTheLeftOutOneMadeIsLeftOutToo) {
  const RuleSet rules = *RuleSet::Parse(
      "bad [exact]: tanh(x) => relu(sqrt(x))\n"
      "behind [exact]: abs(relu(sqrt(x))) => relu(sqrt(x))\n"
      "good-neg [exact]: neg(neg(x)) => x\n",
      "test.rules");
  const RuleSet rest = rules.Without({"bad"}, /*strict=*/false);
  input_ = *ParseGraph("input x f32[4]\noutput y = neg(neg(abs(tanh(x))))\n");
  RewriteWalk walk(input_, rules);
  std::vector<RewriteStep> steps;
  for (const std::string name : {"bad", "behind", "good-neg"}) {
    for (const Rewrite& place : FindRewrites(walk.graph(), rules)) {
      if (place.rule->name == name) steps.push_back({place, false});
    }
    walk.GoTo(*walk.After(steps.back().rewrite));
  }
  ASSERT_EQ(steps.size(), 3u);
  const ReplayedTrail replayed = *ReplayTrail({input_, steps, &rules, input_, &rest});
  EXPECT_THAT(RulesOf(replayed.steps), ElementsAre("good-neg"));
  EXPECT_THAT(replayed.kept, ElementsAre(false, false, true));
  EXPECT_EQ(replayed.graph.digest(),
            ParseGraph("input x f32[4]\noutput y = abs(tanh(x))\n")->digest());
}

}  // namespace
}  // namespace ag
