#include "rules/match/rewrite.h"

#include "rules/match/applier.h"
#include "rules/match/match_set.h"

namespace ag {

std::vector<Rewrite> FindRewrites(const Graph& graph, const RuleSet& rules, int subsets_max) {
  const RuleIndex index(rules, RuleIndex::Kind::kSearch);
  const MatchSet matches(index, graph, subsets_max);
  std::vector<Rewrite> rewrites;
  rewrites.reserve(matches.sites().size());
  for (const Site& site : matches.sites()) rewrites.push_back(matches.At(site));
  return rewrites;
}

StatusOr<Graph> Apply(const Graph& graph, const Rewrite& rewrite) {
  GraphPatch patch(graph);
  AG_TRY(ApplyTo(&patch, *rewrite.rule->pattern, *rewrite.bindings), "{}", rewrite.rule->name);
  StatusOr<Graph> applied = patch.Build();
  if (applied.ok()) return applied;
  // The types were right, so an error of Build is a cycle through the roots.
  return Err(StatusCode::kFailedPrecondition, "{}: {}", rewrite.rule->name,
             Message(applied.status()));
}

}  // namespace ag
