#include "lab/taso/reach.h"

#include <gtest/gtest.h>

#include <set>

#include "graph/text_form.h"
#include "lab/taso/canonical.h"
#include "rules/match/applier.h"
#include "rules/match/matcher.h"
#include "rules/sets/built_in_rules.h"
#include "rules/testing/rules_cases.h"
#include "rules/verify/instance.h"

namespace ag {
namespace {

constexpr const char* kRules =
    "out [exact]: concat.c(relu(x[i])...) => relu(concat.c(x[i]...))\n"
    "once [exact]: relu(relu(x)) => relu(x)\n";

std::optional<ReachPath> Reach(const char* from, const char* to, int steps) {
  const RuleSet rules = *RuleSet::Parse(kRules, "test.rules");
  return FindReachPath(*ParseGraph(from), *ParseGraph(to), rules, {.steps_max = steps});
}

TEST(Reach, FindsTheShortestWayWithinItsSteps) {
  const char* from =
      "input x f32[2]\ninput y f32[3]\noutput o = relu(concat(relu(x), relu(y)) axis=0)";
  const char* to = "input x f32[2]\ninput y f32[3]\noutput o = relu(concat(x, y) axis=0)";
  const auto path = Reach(from, to, 2);
  ASSERT_TRUE(path.has_value());
  EXPECT_EQ(path->rules, (std::vector<std::string>{"out", "once"}));
  EXPECT_FALSE(path->regrouped);
  EXPECT_FALSE(Reach(from, to, 1).has_value());
  EXPECT_FALSE(Reach(to, from, 3).has_value());  // Neither rule leads back.
}

TEST(Reach, SumsAreTheSameInAnyGrouping) {
  const char* in = "input x f32[2]\ninput y f32[2]\ninput z f32[1]\n";
  const std::string left = std::string(in) + "output o = add(add(x, y), z)";
  const std::string right = std::string(in) + "output o = add(x, add(y, z))";
  const std::string other = std::string(in) + "output o = add(z, add(y, y))";
  const auto path = Reach(left.c_str(), right.c_str(), 0);
  ASSERT_TRUE(path.has_value());
  EXPECT_TRUE(path->regrouped);
  EXPECT_TRUE(path->rules.empty());
  EXPECT_FALSE(Reach(left.c_str(), other.c_str(), 1).has_value());
}

TEST(Canonical, ConstantPartsCountByTheirValue) {
  const auto form = [](const std::string& weights) {
    const std::string text =
        "input x f32[2,2]\nw = const f32[2,2] seed 1\nu = const f32[2,2] seed 2\n"
        "output o = matmul(x, " +
        weights + ")";
    return TasoFormOf(*ParseGraph(text), TasoForm::kAsWritten);
  };
  EXPECT_EQ(form("add(w, u)"), form("sub(u, sub(sub(w, w), w))"));
  EXPECT_NE(form("add(w, u)"), form("sub(u, w)"));
}

// Skips instances on which both sides are equal for FindReachPath: other groupings of a sum (A1;
// the search has sums of two), chains that the clean-up passes merge.
TEST(Reach, NoSearchRuleIsImpliedByTheOthersInTwoSteps) {
  constexpr int kInstances = 12;
  int compared = 0;
  for (const Rule& rule : BuiltInRules().rules()) {
    if (rule.clean_up) continue;
    const RuleSet others = BuiltInRules().Without({rule.name}, false);
    int tried = 0, implied = 0;
    for (uint64_t seed = 1; seed < 4000 && tried < kInstances; ++seed) {
      const auto instance = SampleInstance(*rule.pattern, seed, 3);
      if (!instance.has_value() || instance->elements > 2000) continue;
      const Graph& before = instance->graph;
      const auto matches = FindMatches(before, NodeIndex(before), *rule.pattern, 0);
      if (matches.empty()) continue;
      GraphBuilder builder(before);
      if (!ApplyTo(&builder, before, *rule.pattern, matches[0]).ok()) continue;
      const StatusOr<Graph> after = builder.Build();
      if (!after.ok()) continue;
      const auto path = FindReachPath(before, *after, others, {.steps_max = 2});
      if (path.has_value() && path->rules.empty()) continue;
      ++tried;
      implied += path.has_value();
    }
    EXPECT_TRUE(tried == 0 || implied < tried) << rule.name << ": the others do it";
    compared += tried > 0;
  }
  EXPECT_GE(compared, 30);
}

std::vector<std::string> NotForCleanUp(const std::string& rule) {
  std::vector<std::string> names = {rule};
  for (const Rule& other : BuiltInRules().rules()) {
    if (!other.clean_up) names.push_back(other.name);
  }
  return names;
}

// Each rule has a firing case that two steps of the other rules do not reach. Cases that clean-up
// rules alone change are tried with clean-up rules.
TEST(Reach, EveryRuleIsMissedByItsCase) {
  std::set<std::string> missed;
  for (const auto* cases :
       {&kSearchCases, &kMovementCases, &kCleanUpCases, &kMovementCleanUpCases, &kWindowCases}) {
    for (const RuleCase& c : *cases) {
      if (std::string(c.after).empty()) continue;
      const StatusOr<Graph> before = ParseGraph(CaseText(c, c.before));
      const StatusOr<Graph> after = ParseGraph(CaseText(c, c.after));
      ASSERT_TRUE(before.ok() && after.ok()) << c.rule;
      const ReachOptions options{.steps_max = 2, .regroup = false};
      const auto way = FindReachPath(*before, *after, BuiltInRules(), options);
      EXPECT_TRUE(way.has_value()) << c.rule << "\n" << FormatGraph(*before);
      const bool clean_up = BuiltInRules().Find(c.rule)->clean_up;
      const RuleSet others = BuiltInRules().Without(
          clean_up ? NotForCleanUp(c.rule) : std::vector<std::string>{c.rule}, false);
      const auto without = FindReachPath(*before, *after, others, options);
      if (way.has_value() && !without.has_value()) missed.insert(c.rule);
    }
  }
  for (const Rule& rule : BuiltInRules().rules()) {
    EXPECT_TRUE(missed.contains(rule.name)) << rule.name << ": the others do what its cases show";
  }
}

}  // namespace
}  // namespace ag
