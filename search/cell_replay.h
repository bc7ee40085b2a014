// The rewrites that were found for one cell, taken at another cell of its form inside a whole
// graph. Each rewrite is matched anew there, so guards look at that cell's own weights and
// surroundings. Pure functions.
#pragma once

#include <span>
#include <vector>

#include "search/cells.h"
#include "search/one_rule.h"
#include "search/search.h"

namespace ag {

struct CellReplay {
  Graph graph;  // The whole graph after the steps.
  // Valid for the whole graph. None begins a round. Gains are the cell's.
  std::vector<RewriteStep> steps;
};

// Takes `steps`, which were made on the graph of `solved`, a cell of the same form, in `whole`. A
// place is found again by what is computed there. kNotFound: a step has no place; the message names
// its rule. The graph that `cell` was cut from may differ from `whole` only behind the cell: take
// the last cell first. REQUIRES: both graphs are cleaned up, and the rules of `steps` are
// those of `one_rule`.
StatusOr<CellReplay> ReplayInCell(const Graph& whole, const Cell& cell, const Graph& solved,
                                  std::span<const RewriteStep> steps, OneRule& one_rule);

}  // namespace ag
