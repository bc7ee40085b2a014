#include "search/cell_replay.h"

#include <algorithm>

#include "search/edge_names.h"
#include "search/rewrite_walk.h"

namespace ag {
namespace {

Status NoPlace(const Rewrite& rewrite, std::string_view where) {
  return Err(StatusCode::kNotFound, "{}: no place in the {}", rewrite.rule->name, where);
}

// The rewrites at roots of these names.
std::vector<Rewrite> Named(std::vector<Rewrite> rewrites, EdgeNames names,
                           const std::vector<StructureHash>& wanted) {
  std::erase_if(rewrites,
                [&](const Rewrite& rewrite) { return names.Of(rewrite.roots) != wanted; });
  return rewrites;
}

bool IsSame(const Rewrite& a, const Rewrite& b) {
  return a.roots == b.roots && a.variant == b.variant;
}

}  // namespace

// Always: the three walks took the same steps: where they were found, in the cell by itself, and in
// the whole graph. Blind names lead from the first to the second, names to the third.
StatusOr<CellReplay> ReplayInCell(const Graph& whole, const Cell& cell, const Graph& solved,
                                  std::span<const RewriteStep> steps, OneRule& one_rule) {
  const RuleSet& rules = one_rule.rules();
  RewriteWalk first(solved, rules), inside(cell.graph, rules);
  RewriteWalk outside = RewriteWalk::FromClean(whole, rules);
  CellReplay replay;
  for (const RewriteStep& step : steps) {
    const Rule& rule = *step.rewrite.rule;
    if (step.begins_round) {
      AG_TRY(first.BeginRound());
      AG_TRY(inside.BeginRound());
    }
    EdgeNames blind = EdgeNames::Blind(first.graph());
    const std::vector<StructureHash> place = blind.Of(step.rewrite.roots);
    const auto alike = Named(one_rule.Find(first.graph(), rule), std::move(blind), place);
    const auto there =
        Named(one_rule.Find(inside.graph(), rule), EdgeNames::Blind(inside.graph()), place);
    const size_t which =
        std::ranges::find_if(alike, [&](const Rewrite& r) { return IsSame(r, step.rewrite); }) -
        alike.begin();
    if (which == alike.size() || which >= there.size()) return NoPlace(step.rewrite, "cell");
    const Rewrite& here = there[which];
    const auto wanted = EdgeNames::Exact(inside.graph(), cell.inputs).Of(here.roots);
    auto outer =
        Named(one_rule.Find(outside.graph(), rule), EdgeNames::Exact(outside.graph()), wanted);
    if (outer.empty()) return NoPlace(step.rewrite, "whole graph");
    const auto variant = static_cast<size_t>(here.variant);
    Rewrite& taken = outer[std::min(variant, outer.size() - 1)];
    AG_LET(Graph after_first, first.After(step.rewrite));
    AG_LET(Graph after_inside, inside.After(here));
    AG_LET(Graph after_outside, outside.After(taken));
    first.GoTo(std::move(after_first));
    inside.GoTo(std::move(after_inside));
    outside.GoTo(std::move(after_outside));
    replay.steps.push_back({std::move(taken), false, step.gain_ns});
  }
  replay.graph = outside.graph();
  return replay;
}

}  // namespace ag
