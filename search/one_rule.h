// The rewrites of one rule of a set. One thread at a time.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "rules/match/rewrite.h"
#include "search/edge_names.h"

namespace ag {

class OneRule {
 public:
  // `rules` must outlive it and what it returns.
  explicit OneRule(const RuleSet& rules) : rules_(rules) {}

  const RuleSet& rules() const { return rules_; }

  // Returns the rewrites of `rule`, which is in the set, as FindRewrites lists them.
  std::vector<Rewrite> Find(const Graph& graph, const Rule& rule);
  // Returns those whose roots have the names of `place`, ascending, by `names` of the graph.
  std::vector<Rewrite> FindAt(const Graph& graph, const Rule& rule, EdgeNames names,
                              const std::vector<StructureHash>& place);

 private:
  const RuleSet& rules_;
  std::map<std::string, RuleSet> only_;
};

}  // namespace ag
