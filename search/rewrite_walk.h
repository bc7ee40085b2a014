// A graph that takes the rewrites of a trail one by one, as the search took them: the same steps
// from the same graph give the same graphs. Copies are cheap and go their own ways. One thread at a
// time.
#pragma once

#include <memory>
#include <span>

#include "rules/match/rule_index.h"
#include "search/search.h"

namespace ag {

class RewriteWalk {
 public:
  // The clean-up rules of a set, which must outlive them. Many walks may share them.
  using CleanUpRules = std::shared_ptr<const RuleIndex>;
  static CleanUpRules CleanUpRulesOf(const RuleSet& rules);

  // Begins at a graph of which it finds out whether it is cleaned up. `rules` must outlive it.
  RewriteWalk(Graph graph, CleanUpRules rules);
  RewriteWalk(Graph graph, const RuleSet& rules)
      : RewriteWalk(std::move(graph), CleanUpRulesOf(rules)) {}
  // Begins at a graph that is cleaned up.
  static RewriteWalk FromClean(Graph graph, CleanUpRules rules);
  static RewriteWalk FromClean(Graph graph, const RuleSet& rules) {
    return FromClean(std::move(graph), CleanUpRulesOf(rules));
  }

  const Graph& graph() const { return graph_; }

  // Cleans the graph up as a whole: a search does so with the graph at which a round begins.
  Status BeginRound();

  // Returns the graph after the rewrite, cleaned up; the walk stays where it is.
  // kFailedPrecondition: as Apply (rules/match/rewrite.h).
  StatusOr<Graph> After(const Rewrite& rewrite) const;
  // Goes to such a graph.
  void GoTo(Graph after);

  // Takes all steps; the first is valid for graph(). An error names the rule.
  Status Take(std::span<const RewriteStep> steps);

 private:
  RewriteWalk(Graph graph, CleanUpRules rules, bool is_clean);
  bool IsClean() const;

  Graph graph_;
  CleanUpRules clean_up_;
  bool is_clean_;  // As ChildGraphsOptions::parent_is_clean.
};

}  // namespace ag
