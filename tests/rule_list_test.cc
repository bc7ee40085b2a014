// docs/rules.md says of each rule where in the model zoo it fires.
#include "rules/sets/rule_list.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file.h"
#include "rules/match/child_graphs.h"
#include "rules/match/match_set.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "zoo/zoo.h"

namespace ag {
namespace {

// By rule, at how many places of one model.
using Counts = std::map<std::string, int>;

struct Fires {
  Counts at_once;  // Clean-up: in the model as exported. Others: in the cleaned model.
  Counts later;    // After one rewrite by another rule, tried once for each rule.
};

Fires FiresIn(std::string_view model) {
  const RuleSet& rules = BuiltInRules();
  MemoryWeights weights;
  Fires fires;
  std::vector<CleanUpStep> steps;
  const StatusOr<Graph> exported = BuildZooModel(model, {}, &weights);
  const StatusOr<Graph> clean = exported.ok() ? CleanUp(*exported, rules, &steps) : exported;
  if (!clean.ok()) {
    ADD_FAILURE() << model << ": " << ToString(clean.status());
    return fires;
  }
  for (const CleanUpStep& step : steps) {
    if (rules.Find(step.rule) != nullptr) fires.at_once[step.rule] += step.count;
  }
  const RuleIndex search(rules, RuleIndex::Kind::kSearch);
  const RuleIndex clean_up(rules, RuleIndex::Kind::kCleanUp);
  const MatchSet matches(search, *clean);
  ChildGraphs children(*clean, clean_up, {.parent_is_clean = true});
  for (const Site& site : matches.sites()) {
    if (fires.at_once[site.rule->name]++ > 0) continue;
    if (!children.Try(matches.At(site)).ok()) continue;
    const StatusOr<ChildGraph> child = children.Make();
    if (!child.ok()) continue;
    const MatchSet then = matches.Next(child->graph, child->place);
    for (const Site& next : then.sites()) ++fires.later[next.rule->name];
  }
  return fires;
}

std::map<std::string, std::string> WhereRulesFire() {
  std::map<std::string, std::string> at_once, later;
  for (const ZooEntry& entry : Zoo()) {
    const Fires fires = FiresIn(entry.name);
    for (const auto& [rule, count] : fires.at_once) {
      at_once[rule] += fmt::format("{}{} {}", at_once[rule].empty() ? "" : ", ", entry.name, count);
    }
    for (const auto& [rule, count] : fires.later) {
      later[rule] += fmt::format("{}{}", later[rule].empty() ? "" : ", ", entry.name);
    }
  }
  std::map<std::string, std::string> where;
  for (const Rule& rule : BuiltInRules().rules()) {
    where[rule.name] = at_once.contains(rule.name) ? "Places: " + at_once[rule.name] + "."
                       : later.contains(rule.name) ? "After another rule: " + later[rule.name] + "."
                                                   : "In no model of the zoo.";
  }
  return where;
}

TEST(RuleList, TheDocsSayOfEveryRuleWhereItFires) {
  const std::string path = std::string(AG_SOURCE_DIR) + "/docs/rules.md";
  const std::string text = *ReadFile(path);
  const size_t mark = text.find(kRuleListMark);
  ASSERT_NE(mark, std::string::npos);
  const std::string list = FormatRuleList(BuiltInRules(), WhereRulesFire());
  const size_t below = mark + std::string(kRuleListMark).size();
  if (std::getenv("AG_WRITE_DOCS") != nullptr) {
    ASSERT_TRUE(WriteFileAtomically(path, text.substr(0, below) + list).ok());
    return;
  }
  EXPECT_EQ(text.substr(below), list) << "AG_WRITE_DOCS=1 tests_test writes docs/rules.md anew";
}

}  // namespace
}  // namespace ag
