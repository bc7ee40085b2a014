#include "search/rewrite_walk.h"

#include "rules/match/child_graphs.h"
#include "rules/match/rule_clean_up.h"

namespace ag {

RewriteWalk::CleanUpRules RewriteWalk::CleanUpRulesOf(const RuleSet& rules) {
  return std::make_shared<const RuleIndex>(rules, RuleIndex::Kind::kCleanUp);
}

RewriteWalk::RewriteWalk(Graph graph, CleanUpRules rules, bool is_clean)
    : graph_(std::move(graph)), clean_up_(std::move(rules)), is_clean_(is_clean) {}

RewriteWalk::RewriteWalk(Graph graph, CleanUpRules rules)
    : RewriteWalk(std::move(graph), std::move(rules), true) {
  is_clean_ = IsClean();
}

RewriteWalk RewriteWalk::FromClean(Graph graph, CleanUpRules rules) {
  return RewriteWalk(std::move(graph), std::move(rules), true);
}

bool RewriteWalk::IsClean() const {
  const StatusOr<Graph> clean = CleanUp(graph_, *clean_up_);
  return clean.ok() && (clean->SharesAll(graph_) || clean->digest() == graph_.digest());
}

Status RewriteWalk::BeginRound() {
  AG_LET(graph_, CleanUp(graph_, *clean_up_));
  is_clean_ = IsClean();
  return OkStatus();
}

StatusOr<Graph> RewriteWalk::After(const Rewrite& rewrite) const {
  ChildGraphs children(graph_, *clean_up_, {.parent_is_clean = is_clean_});
  AG_TRY(children.Try(rewrite));
  AG_LET(ChildGraph child, children.Make());
  return std::move(child.graph);
}

void RewriteWalk::GoTo(Graph after) {
  graph_ = std::move(after);
  is_clean_ = true;
}

Status RewriteWalk::Take(std::span<const RewriteStep> steps) {
  for (const RewriteStep& step : steps) {
    if (step.begins_round) AG_TRY(BeginRound());
    StatusOr<Graph> after = After(step.rewrite);
    AG_TRY(after, "{}", step.rewrite.rule->name);
    GoTo(*std::move(after));
  }
  return OkStatus();
}

}  // namespace ag
