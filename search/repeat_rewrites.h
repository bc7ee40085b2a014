// The rewrites of one plan, repeated on the same model at other sizes. What a rewrite or a clean-up
// finds may depend on sizes, on a batch of one above all; a rewrite that has its place at all sizes
// is valid for open ones as far as these tell. Pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "rules/match/rule_clean_up.h"
#include "search/search.h"

namespace ag {

struct RepeatedRewrites {
  // One for each graph given, rewritten and cleaned up, with commutative operands in one order.
  std::vector<Graph> graphs;
  // Of each: what was taken there. Gains are those at the input's sizes.
  std::vector<std::vector<RewriteStep>> steps;
  int applied = 0;
  std::vector<AppliedRewrite> left_out;  // Those without a place at other sizes.
};

// Repeats `steps`, which were made on `input`, on `others`: the cleaned-up graphs of the same model
// at other sizes. A place is found again by what is computed there; a step that lacks its place in
// one of them is left out in all. The bindings of `steps` must belong to `rules`. `on_rewritten` is
// told each step of the first of the others, or of `input` where there are none.
StatusOr<RepeatedRewrites> RepeatRewrites(const Graph& input, std::span<const RewriteStep> steps,
                                          std::vector<Graph> others, const RuleSet& rules,
                                          const OnRewritten& on_rewritten = {});

}  // namespace ag
