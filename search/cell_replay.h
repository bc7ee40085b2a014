// The rewrites that were found for one cell, taken at another cell of its form inside a whole
// graph. Each rewrite is matched anew there, so guards look at that cell's own weights and
// surroundings. Pure functions.
#pragma once

#include <span>
#include <vector>

#include "search/cells.h"
#include "search/one_rule.h"
#include "search/region_store.h"
#include "search/search.h"

namespace ag {

struct CellReplay {
  Graph graph;  // The whole graph after the steps.
  // Valid for the whole graph. None begins a round. Gains are the cell's.
  std::vector<RewriteStep> steps;
};

// Takes `steps`, which were found for a cell of the same form, in `whole`. kNotFound: a step has no
// place; the message names its rule. The graph that `cell` was cut from may differ from `whole`
// only behind the cell: take the last cell first. REQUIRES: `whole` is cleaned up.
StatusOr<CellReplay> ReplayInCell(const Graph& whole, const Cell& cell,
                                  std::span<const RegionStep> steps, OneRule& one_rule);

}  // namespace ag
