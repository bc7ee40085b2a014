#include "search/cell_replay.h"

#include <algorithm>

#include "search/rewrite_walk.h"

namespace ag {
namespace {

// Returns the names of the roots, ascending.
std::vector<StructureHash> RootNames(const Rewrite& rewrite, std::span<const StructureHash> nodes) {
  std::vector<StructureHash> names;
  for (const Edge& root : rewrite.roots) names.push_back(NameOf(root, nodes));
  std::ranges::sort(names);
  return names;
}

Status NoPlace(const Rewrite& rewrite, std::string_view where) {
  return Err(StatusCode::kNotFound, "{}: no place in the {}", rewrite.rule->name, where);
}

// The rewrites at roots of these names.
std::vector<Rewrite> Named(std::vector<Rewrite> rewrites, std::span<const StructureHash> nodes,
                           const std::vector<StructureHash>& wanted) {
  std::erase_if(rewrites,
                [&](const Rewrite& rewrite) { return RootNames(rewrite, nodes) != wanted; });
  return rewrites;
}

bool IsSame(const Rewrite& a, const Rewrite& b) {
  return a.roots == b.roots && a.variant == b.variant;
}

}  // namespace

// Always: the three walks took the same steps: where they were found, in the cell by itself, and in
// the whole graph. Blind names lead from the first to the second, names to the third.
StatusOr<CellReplay> ReplayInCell(const Graph& whole, const Cell& cell, const Graph& solved,
                                  std::span<const RewriteStep> steps, const RuleSet& rules) {
  OneRule one_rule(rules);
  RewriteWalk first(solved, rules), inside(cell.graph, rules);
  RewriteWalk outside = RewriteWalk::FromClean(whole, rules);
  CellReplay replay;
  for (const RewriteStep& step : steps) {
    const Rule& rule = *step.rewrite.rule;
    if (step.begins_round) {
      AG_TRY(first.BeginRound());
      AG_TRY(inside.BeginRound());
    }
    const std::vector<StructureHash> first_names = BlindNamesOf(first.graph());
    const std::vector<StructureHash> blind = RootNames(step.rewrite, first_names);
    const auto alike = Named(one_rule.Find(first.graph(), rule), first_names, blind);
    const auto there =
        Named(one_rule.Find(inside.graph(), rule), BlindNamesOf(inside.graph()), blind);
    const size_t place =
        std::ranges::find_if(alike, [&](const Rewrite& r) { return IsSame(r, step.rewrite); }) -
        alike.begin();
    if (place >= there.size()) return NoPlace(step.rewrite, "cell");
    const auto wanted = RootNames(there[place], NamesOf(inside.graph(), cell.inputs));
    auto outer = Named(one_rule.Find(outside.graph(), rule), NamesOf(outside.graph()), wanted);
    if (outer.empty()) return NoPlace(step.rewrite, "whole graph");
    const auto variant = static_cast<size_t>(there[place].variant);
    Rewrite& taken = outer[std::min(variant, outer.size() - 1)];
    AG_LET(Graph after_first, first.After(step.rewrite));
    AG_LET(Graph after_inside, inside.After(there[place]));
    AG_LET(Graph after_outside, outside.After(taken));
    first.GoTo(std::move(after_first));
    inside.GoTo(std::move(after_inside));
    outside.GoTo(std::move(after_outside));
    replay.steps.push_back({std::move(taken), false});
  }
  replay.graph = outside.graph();
  return replay;
}

}  // namespace ag
