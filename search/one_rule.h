// The rewrites of one rule of a set. One thread at a time.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "rules/match/rewrite.h"
#include "search/edge_names.h"
#include "search/rewrite_walk.h"

namespace ag {

class OneRule {
 public:
  // `rules` must outlive it and what it returns.
  explicit OneRule(const RuleSet& rules)
      : rules_(rules), clean_up_(RewriteWalk::CleanUpRulesOf(rules)) {}

  const RuleSet& rules() const { return rules_; }
  // For walks that take its rewrites.
  const RewriteWalk::CleanUpRules& clean_up() const { return clean_up_; }

  // Returns the rewrites of `rule`, which is in the set, as FindRewrites lists them.
  std::vector<Rewrite> Find(const Graph& graph, const Rule& rule);
  // Returns those whose roots have the names of `place`, ascending, by `names` of the graph.
  std::vector<Rewrite> FindAt(const Graph& graph, const Rule& rule, EdgeNames names,
                              const std::vector<StructureHash>& place);

 private:
  const RuleSet& rules_;
  const RewriteWalk::CleanUpRules clean_up_;
  std::map<std::string, RuleSet> only_;
};

}  // namespace ag
