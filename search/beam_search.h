// Beam search over rewrites of one graph, in passes: a pass expands, of each number of rewrites,
// the few graphs with the least estimates that no pass expanded before. No gain is needed on the
// way, so it finds what backtracking.h prunes. It makes all combinations of rewrites that do not
// touch each other, so it is for parts of a graph, and for what backtracking leaves of a round. A
// small space is searched to its end. One thread at a time.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "search/best_estimate.h"
#include "search/best_graphs.h"
#include "search/derived_graphs.h"
#include "search/scored_graph.h"

namespace ag {

class BeamSearch {
 public:
  // The most rewrites in a row.
  static constexpr int kRewritesMax = 8;
  // The most graphs that a pass expands of each number of rewrites. Only their groups are measured.
  static constexpr size_t kWidth = 8;

  // Both must outlive it. One object serves one Run.
  BeamSearch(const SearchSetting& setting, RewriteTrail& trail);

  // Returns up to limits.candidates_max graphs with the least estimates (below beta x the least met
  // before them), ascending and cleaned up, without `roots` and without graphs whose structure is
  // in `skip`. Scores at most `graphs_max` graphs, no more than limits.graphs_total_max, and
  // expands none after limits.stale_graphs_max graphs that did not lower the least estimate.
  std::vector<RankedGraph> Run(const std::vector<RankedGraph>& roots,
                               const absl::flat_hash_set<StructureHash>& skip, int graphs_max);

  // Returns why Run ended. kNone: all graphs within kRewritesMax rewrites were scored.
  StopReason stop() const { return stop_; }

 private:
  // The place of an expanded graph.
  struct Place {
    double estimate_ns = 0;
    int step = RewriteTrail::kInput;  // In the trail.
    int rewrites = 0;                 // Since the root.
  };
  struct Entry {
    DerivedGraphs::Id graph = -1;
    Place parent;
    Rewrite rewrite;          // What made the graph.
    int turns = 0;            // Number of times its groups were measured.
    bool is_settled = false;  // Its estimate is final.
    // LearnedTimes::version() when it was made, if all its groups were measured; -1: they were not.
    int64_t measured_at = -1;
  };
  using Level = std::map<GraphKey, Entry>;

  StopReason LimitReached() const;
  bool MayScore();
  bool MayExpand();
  bool Pass();
  bool SettleFront(Level* level);
  void Expand(DerivedGraphs::Id graph, const Place& place);

  const SearchSetting& setting_;
  RewriteTrail& trail_;
  DerivedGraphs graphs_;
  const absl::flat_hash_set<StructureHash>* skip_ = nullptr;
  StopReason stop_ = StopReason::kNone;
  absl::flat_hash_set<StructureHash> seen_;
  std::vector<Level> levels_;  // Graphs that are not expanded yet, by number of rewrites.
  BestGraphs best_;
  BestEstimate least_;                    // Of the expanded graphs.
  int end_ = 0;                           // No more graphs are scored at this count.
  StopReason limit_ = StopReason::kNone;  // What was reached where a graph was to be scored.
};

}  // namespace ag
