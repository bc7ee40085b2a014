// Backtracking on a part of a graph by itself: a cell (cells.h) or one of the paper's regions. One
// thread at a time.
#pragma once

#include <vector>

#include "search/backtracking.h"
#include "search/cell_replay.h"
#include "search/region_store.h"

namespace ag {

// The most graphs that each strategy scores.
struct PartLimits {
  int backtracking_graphs = 0;
  int beam_graphs = 0;
};

struct PartSearch {
  double estimate_ns = kNoTimeNs;  // Of the part as it is.
  std::vector<RegionResult> results;
  StopReason stop = StopReason::kNone;  // Backtracking::stop().
  SearchedRegion figures;               // Without what only the whole graph tells.
};

// Returns what makes the estimate of setting.request.input, a cleaned-up part, less: the best
// first, at most limits.candidates_max: by backtracking, then by a beam. Measures its groups. It
// counts as one graph scored, beside those that they score.
PartSearch SearchPart(const SearchSetting& setting, OneRule& one_rule, const PartLimits& limits);

// Adds the steps of `replay` to the trail behind `whole`, whose graph becomes the replay's.
// `begins_round`: the first step follows a clean-up of the graph as a whole.
void TakeReplay(CellReplay replay, bool begins_round, RankedGraph* whole, RewriteTrail* trail);

}  // namespace ag
