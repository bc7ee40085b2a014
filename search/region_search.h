// The paper's optimization of one graph (AutoGraph, AAAI 2023, "Graph optimization"): the graph is
// cut into pieces (partition.h), each run of adjacent pieces is searched by itself, and dynamic
// programming joins the best results of runs that cover the graph. The recurrence is not in the
// sources we have; ours: best[j] = the K least of best[i] + results(i..j) over all runs i..j, by
// the sum of the runs' estimates. What is joined is scored whole. One thread at a time.
#pragma once

#include <vector>

#include "absl/container/flat_hash_set.h"
#include "search/backtracking.h"
#include "search/cells.h"
#include "search/one_rule.h"
#include "search/part_search.h"
#include "search/partition.h"

namespace ag {

class RegionSearch {
 public:
  // Both must outlive it. One object serves one Run.
  RegionSearch(const SearchSetting& setting, RewriteTrail& trail);

  // Returns up to limits.candidates_max graphs with the least estimates, ascending and cleaned up,
  // without `root` and without graphs whose structure is in `skip`. `graphs_max` graphs are
  // shared by the regions.
  std::vector<RankedGraph> Run(const RankedGraph& root,
                               const absl::flat_hash_set<StructureHash>& skip, int graphs_max);

  // Returns why Run ended. kNone: every region was searched to its end.
  StopReason stop() const { return stop_; }

 private:
  struct Solved {
    Region region;
    Cell cell;
    PartSearch found;
  };
  // A cover of the first pieces by results of regions; -1: the region as it is.
  struct Cover {
    double estimate_ns = 0;
    std::vector<std::pair<int, int>> parts;  // In solved_, and in its results; without -1.
  };

  bool IsSpent() const;
  void Solve(const Region& region, Cell cell, int graphs_max);
  std::vector<Cover> Join(int pieces) const;
  StatusOr<RankedGraph> Make(const RankedGraph& root, const Cover& cover);
  void Record(const Cover& cover, double estimate_ns) const;
  int ResultsMax() const;

  const SearchSetting& whole_setting_;
  SearchRequest request_;  // Of the region that is searched.
  SearchSetting setting_;  // The same; counts and time are the whole search's.
  RewriteTrail& trail_;
  OneRule one_rule_;
  std::vector<Solved> solved_;
  StopReason stop_ = StopReason::kNone;
};

}  // namespace ag
