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
  RegionStep told{.rule = rewrite.rule->name,
                  .place = EdgeNames::Blind(graph()).Of(rewrite.roots),
                  .begins_round = step.begins_round,
                  .gain_ns = std::isfinite(step.gain_ns) ? step.gain_ns : 0};
  const auto alike =
      one_rule_.FindAt(graph(), *rewrite.rule, EdgeNames::Blind(graph()), told.place);
  const auto it = std::ranges::find_if(alike, [&](const Rewrite& other) {
    return other.roots == rewrite.roots && other.variant == rewrite.variant;
  });
  if (it == alike.end()) return NoPlaceIn(told.rule);
  told.which = static_cast<int>(it - alike.begin());
  return told;
}

StatusOr<std::vector<RegionStep>> TellSteps(const Graph& region, std::span<const RewriteStep> steps,
                                            OneRule& one_rule) {
  RegionWalk walk(region, one_rule);
  std::vector<RegionStep> told;
  for (const RewriteStep& step : steps) {
    AG_LET(told.emplace_back(), walk.Tell(step));
    AG_LET(Graph after, walk.After(step.rewrite));
    walk.GoTo(std::move(after));
  }
  return told;
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
