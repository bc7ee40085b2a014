#include "rules/match/rewrite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "graph/text_form.h"
#include "rules/match/applier.h"
#include "rules/match/matcher.h"
#include "rules/sets/built_in_rules.h"
#include "rules/testing/rules_cases.h"
#include "rules/testing/testing.h"

namespace ag {
namespace {

std::string Canonical(const std::string& text) { return FormatGraph(MustParse(text)); }

// Returns the graphs after each match of the rule.
std::vector<std::string> AllResults(const Rule& rule, const Graph& graph) {
  std::vector<std::string> results;
  for (const auto& match : FindMatches(graph, NodeIndex(graph), *rule.pattern, 8)) {
    GraphBuilder builder(graph);
    const Status applied = ApplyTo(&builder, graph, *rule.pattern, match);
    EXPECT_TRUE(applied.ok()) << rule.name << ": " << ToString(applied);
    const StatusOr<Graph> built = builder.Build();
    EXPECT_TRUE(built.ok()) << rule.name << ": " << ToString(built.status());
    if (applied.ok() && built.ok()) results.push_back(FormatGraph(*built));
  }
  return results;
}

void RunCases(const std::vector<RuleCase>& cases) {
  for (const RuleCase& c : cases) {
    const std::string before = CaseText(c, c.before);
    SCOPED_TRACE(std::string(c.rule) + "\n" + before);
    const Rule* rule = BuiltInRules().Find(c.rule);
    ASSERT_NE(rule, nullptr);
    const std::vector<std::string> results = AllResults(*rule, MustParse(before));
    if (std::string(c.after).empty()) {
      EXPECT_THAT(results, testing::IsEmpty());
    } else {
      EXPECT_THAT(results, testing::Contains(Canonical(CaseText(c, c.after))));
    }
  }
}

TEST(Rules, SearchRulesFireAsTheirCasesSay) { RunCases(kSearchCases); }
TEST(Rules, MovementRulesFireAsTheirCasesSay) { RunCases(kMovementCases); }
TEST(Rules, CleanUpRulesFireAsTheirCasesSay) { RunCases(kCleanUpCases); }
TEST(Rules, MovementCleanUpRulesFireAsTheirCasesSay) { RunCases(kMovementCleanUpCases); }
TEST(Rules, RulesOfConvolutionsAndPoolsFireAsTheirCasesSay) { RunCases(kWindowCases); }

TEST(Rules, EveryRuleHasAFiringAndANonFiringCase) {
  std::set<std::string> firing, silent;
  for (const auto* cases :
       {&kSearchCases, &kMovementCases, &kCleanUpCases, &kMovementCleanUpCases, &kWindowCases}) {
    for (const RuleCase& c : *cases)
      (std::string(c.after).empty() ? silent : firing).insert(c.rule);
  }
  for (const Rule& rule : BuiltInRules().rules()) {
    EXPECT_TRUE(firing.contains(rule.name)) << rule.name;
    EXPECT_TRUE(silent.contains(rule.name)) << rule.name;
  }
}

}  // namespace
}  // namespace ag
