#include "search/cell_replay.h"

#include <algorithm>

#include "search/edge_names.h"
#include "search/region_steps.h"
#include "search/rewrite_walk.h"

namespace ag {

// Always: both walks took the same steps, in the cell by itself and in the whole graph. Exact names
// lead from the first to the second.
StatusOr<CellReplay> ReplayInCell(const Graph& whole, const Cell& cell,
                                  std::span<const RegionStep> steps, OneRule& one_rule) {
  RegionWalk inside(cell.graph, one_rule);
  RewriteWalk outside = RewriteWalk::FromClean(whole, one_rule.clean_up());
  CellReplay replay;
  for (const RegionStep& step : steps) {
    AG_LET(const Rewrite here, inside.Find(step));
    const auto place = EdgeNames::Exact(inside.graph(), cell.inputs).Of(here.roots);
    auto there =
        one_rule.FindAt(outside.graph(), *here.rule, EdgeNames::Exact(outside.graph()), place);
    if (there.empty()) {
      return Err(StatusCode::kNotFound, "{}: no place in the whole graph", step.rule);
    }
    const auto variant = static_cast<size_t>(here.variant);
    Rewrite& taken = there[std::min(variant, there.size() - 1)];
    AG_LET(Graph after_inside, inside.After(here));
    AG_LET(Graph after_outside, outside.After(taken));
    inside.GoTo(std::move(after_inside));
    outside.GoTo(std::move(after_outside));
    replay.steps.push_back({std::move(taken), false, step.gain_ns});
  }
  replay.graph = outside.graph();
  return replay;
}

}  // namespace ag
