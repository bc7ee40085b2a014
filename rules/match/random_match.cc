#include "rules/match/random_match.h"

#include <utility>

namespace ag {

RandomMatch ChooseMatch(const Graph& graph, const RuleSet& rules, Random& random) {
  const NodeIndex index(graph);
  std::vector<const Rule*> order;
  for (const Rule& rule : rules.rules()) order.push_back(&rule);
  for (size_t left = order.size(); left > 0; --left) {
    std::swap(order[random.Below(left)], order[left - 1]);
    const Rule& rule = *order[left - 1];
    auto matches = FindMatches(graph, index, *rule.pattern, /*subsets_max=*/4);
    if (matches.empty()) continue;
    return {&rule, std::move(matches[random.Below(matches.size())])};
  }
  return {};
}

}  // namespace ag
