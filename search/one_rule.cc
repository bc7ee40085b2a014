#include "search/one_rule.h"

namespace ag {

std::vector<Rewrite> OneRule::Find(const Graph& graph, const Rule& rule) {
  auto it = only_.find(rule.name);
  if (it == only_.end()) {
    std::vector<std::string> others;
    for (const Rule& other : rules_.rules()) {
      if (other.name != rule.name) others.push_back(other.name);
    }
    it = only_.emplace(rule.name, rules_.Without(others, /*strict=*/false)).first;
  }
  std::vector<Rewrite> rewrites = FindRewrites(graph, it->second);
  for (Rewrite& rewrite : rewrites) rewrite.rule = rules_.Find(rule.name);
  return rewrites;
}

std::vector<Rewrite> OneRule::FindAt(const Graph& graph, const Rule& rule, EdgeNames names,
                                     const std::vector<StructureHash>& place) {
  std::vector<Rewrite> rewrites = Find(graph, rule);
  std::erase_if(rewrites, [&](const Rewrite& rewrite) { return names.Of(rewrite.roots) != place; });
  return rewrites;
}

}  // namespace ag
