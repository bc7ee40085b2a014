#include "rules/rewrite.h"

#include <algorithm>
#include <map>

#include "rules/applier.h"
#include "rules/matcher.h"

namespace ag {
namespace {

std::vector<Edge> SortedRoots(const Rewrite::Bindings& bindings) {
  std::vector<Edge> roots;
  for (const auto& family : bindings.roots) roots.insert(roots.end(), family.begin(), family.end());
  std::sort(roots.begin(), roots.end());
  return roots;
}

}  // namespace

std::vector<Rewrite> FindRewrites(const Graph& graph, const RuleSet& rules, int subsets_max) {
  const NodeIndex index(graph);
  std::vector<Rewrite> rewrites;
  for (const Rule& rule : rules.rules()) {
    if (rule.clean_up) continue;
    std::vector<Rewrite> found;
    for (auto& bindings : FindMatches(graph, index, *rule.pattern, subsets_max)) {
      Rewrite rewrite{.rule = &rule, .roots = SortedRoots(bindings)};
      rewrite.bindings = std::make_shared<const Rewrite::Bindings>(std::move(bindings));
      found.push_back(std::move(rewrite));
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Rewrite& a, const Rewrite& b) { return a.roots < b.roots; });
    for (size_t i = 1; i < found.size(); ++i) {
      if (found[i].roots == found[i - 1].roots) found[i].variant = found[i - 1].variant + 1;
    }
    std::move(found.begin(), found.end(), std::back_inserter(rewrites));
  }
  return rewrites;
}

StatusOr<Graph> Apply(const Graph& graph, const Rewrite& rewrite) {
  GraphBuilder builder(graph);
  AG_TRY(ApplyTo(&builder, graph, *rewrite.rule->pattern, *rewrite.bindings), "{}",
         rewrite.rule->name);
  StatusOr<Graph> applied = builder.Build();
  if (applied.ok()) return applied;
  // The types were right, so what Build refuses is a cycle through the roots.
  return Err(StatusCode::kFailedPrecondition, "{}: {}", rewrite.rule->name,
             Message(applied.status()));
}

}  // namespace ag
