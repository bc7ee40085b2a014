// What one search of a form of cells (cells.h) finds: by a search of it, or from what a store knows
// of it. One thread at a time.
#pragma once

#include <vector>

#include "search/one_rule.h"
#include "search/part_search.h"
#include "search/region_store.h"

namespace ag {

struct FormFound {
  RegionOrigin origin = RegionOrigin::kNotReached;
  RegionEntry entry;                  // kKnown: as the store gave it. `operators` is not set.
  std::vector<RegionResult> results;  // That gain; the best first.
  SearchedRegion figures;
};

// The most graphs scored per form.
inline constexpr PartLimits kFormLimits = {.backtracking_graphs = 200, .beam_graphs = 400};

// Searches the form setting.request.input, or takes `known`, which may be null: then only the form
// and its results are scored. kNotReached: the run was over, or had no graphs left, before
// anything was scored. limits.graphs_total_max holds.
FormFound SearchForm(const SearchSetting& setting, OneRule& one_rule, const RegionEntry* known);

}  // namespace ag
