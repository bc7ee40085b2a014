#include "search/region_steps.h"

#include <algorithm>
#include <cmath>

#include "search/edge_names.h"

namespace ag {
namespace {

Status NoPlaceIn(const std::string& rule) {
  return Err(StatusCode::kNotFound, "{}: no place in the region", rule);
}

}  // namespace

RegionWalk::RegionWalk(const Graph& region, OneRule& one_rule)
    : one_rule_(one_rule), walk_(region, one_rule.clean_up()) {}

Status RegionWalk::BeginStep(bool begins_round) {
  return begins_round ? walk_.BeginRound() : OkStatus();
}

StatusOr<Rewrite> RegionWalk::Find(const RegionStep& step) {
  const Rule* const rule = one_rule_.rules().Find(step.rule);
  if (rule == nullptr || rule->clean_up) {
    return Err(StatusCode::kNotFound, "{}: no such rule", step.rule);
  }
  AG_TRY(BeginStep(step.begins_round));
  std::vector<Rewrite> there =
      one_rule_.FindAt(graph(), *rule, EdgeNames::Blind(graph()), step.place);
  if (step.which < 0 || static_cast<size_t>(step.which) >= there.size()) {
    return NoPlaceIn(step.rule);
  }
  return std::move(there[static_cast<size_t>(step.which)]);
}

StatusOr<RegionStep> RegionWalk::Tell(const RewriteStep& step) {
  AG_TRY(BeginStep(step.begins_round));
  const Rewrite& rewrite = step.rewrite;
  EdgeNames names = EdgeNames::Blind(graph());
  RegionStep told{.rule = rewrite.rule->name,
                  .place = names.Of(rewrite.roots),
                  .begins_round = step.begins_round,
                  .gain_ns = std::isfinite(step.gain_ns) ? step.gain_ns : 0};
  const auto alike = one_rule_.FindAt(graph(), *rewrite.rule, std::move(names), told.place);
  const auto it = std::ranges::find_if(alike, [&](const Rewrite& other) {
    return other.roots == rewrite.roots && other.variant == rewrite.variant;
  });
  if (it == alike.end()) return NoPlaceIn(told.rule);
  told.which = static_cast<int>(it - alike.begin());
  return told;
}

StatusOr<std::vector<RegionStep>> StepTeller::StepsTo(int step) {
  std::vector<RegionStep> steps;
  const RegionWalk* before = &region_;
  for (const int at : trail_.StepsTo(step)) {
    auto known = told_.find(at);
    if (known == told_.end()) {
      const RewriteStep& made_by = trail_.MadeBy(at);
      RegionWalk walk = *before;
      AG_LET(RegionStep told, walk.Tell(made_by));
      AG_LET(Graph after, walk.After(made_by.rewrite));
      walk.GoTo(std::move(after));
      known = told_.emplace(at, Told{std::move(told), std::move(walk)}).first;
    }
    steps.push_back(known->second.step);
    before = &known->second.after;
  }
  return steps;
}

StatusOr<Graph> TakeSteps(const Graph& region, std::span<const RegionStep> steps,
                          OneRule& one_rule) {
  RegionWalk walk(region, one_rule);
  for (const RegionStep& step : steps) {
    AG_LET(const Rewrite rewrite, walk.Find(step));
    AG_LET(Graph after, walk.After(rewrite));
    walk.GoTo(std::move(after));
  }
  return walk.graph();
}

}  // namespace ag
