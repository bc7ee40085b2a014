// What each rule of a found plan is worth: its rewrites are repeated without those of the rule
// (server/pipeline/guilty_rewrite.h), planned as the found plan is, and timed beside it. A sum of
// differences of estimates says little of that. Pure functions, but for what the Measurer measures.
#pragma once

#include <functional>

#include "search/search.h"

namespace ag {

// What the plan was found for. All references must outlive the call.
struct GainRequest {
  const Graph& input;  // As the search's.
  const RuleSet& rules;
  const DeviceSpec& spec;
  const Environment& environment;
  const Policy& policy;
  std::function<bool()> stop;  // Asked between steps; true: the rest stays as it is.
};

// The most rules that are left out, those with the largest estimated gains or losses.
inline constexpr size_t kGainRulesMax = 8;
// The most rewrites of a plan among which such that undo each other are looked for: each try
// repeats all of them.
inline constexpr size_t kUndoneStepsMax = 40;

// Takes rewrites that others undo out of the plan's steps and its list of rewrites: those without
// which, and without what has no place then, the same graph comes. A plan of more than
// kUndoneStepsMax steps stays as it is. REQUIRES: no gain was measured.
void DropUndoneRewrites(const GainRequest& request, FoundPlan* plan);

// Fills AppliedRewrite::gain and also_left_out of the plan's rewrites. A rule whose rewrites cannot
// be left out, or whose rest cannot be planned or timed, keeps its estimate. Returns the Measurer's
// error when none could be timed.
Status MeasureGains(const GainRequest& request, Measurer& measurer, FoundPlan* plan);

}  // namespace ag
