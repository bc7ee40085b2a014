#include "server/pipeline/rules_of_nodes.h"

#include "base/log.h"
#include "graph/onnx/export/correspondence.h"
#include "rules/match/rule_clean_up.h"
#include "search/repeat_rewrites.h"

namespace ag {
namespace {

OnRewritten NextOf(NodeRules& made_by) {
  return [&made_by](const Graph& after, const std::string& rule) { made_by.Next(after, rule); };
}

}  // namespace

NodeRules RulesOfCleanUp(const Graph& model, const RuleSet& rules) {
  NodeRules made_by(model);
  const StatusOr<Graph> clean = CleanUp(model, rules, nullptr, NextOf(made_by));
  if (clean.ok()) made_by.Next(*clean, "");
  return made_by;
}

NodeRules RulesOfPlan(const NodeRules& before, const Graph& input, const FoundPlan& plan,
                      const RuleSet& rules) {
  NodeRules made_by = before;
  const auto repeated = RepeatRewrites(input, plan.steps, {}, rules, NextOf(made_by));
  if (!repeated.ok()) {
    LogInfo("names do not say which rules made nodes: {}", Message(repeated.status()));
    made_by = before;
  }
  made_by.Next(plan.graph, "");
  return made_by;
}

std::vector<std::string> RulesIn(const Graph& whole, const Graph& part,
                                 const std::vector<std::string>& rules) {
  const std::vector<NodeId> places = Correspondence(part, whole);
  std::vector<std::string> in_whole(places.size());
  for (size_t i = 0; i < places.size(); ++i) {
    const auto place = static_cast<size_t>(places[i]);
    if (places[i] >= 0 && place < rules.size()) in_whole[i] = rules[place];
  }
  return in_whole;
}

}  // namespace ag
