// Best-first backtracking over rewrites of one graph (MetaFlow, TASO, AutoGraph): the graph with
// the least estimate is taken next, all its rewrites are made, and what is below beta x best stays.
//
// Estimates become measurements lazily. A new graph is scored with what is known; before the next
// graph is taken, the first kLookAhead graphs of the queue have the groups they would run measured
// in one batch and are scored again. So a group is measured only when a graph that stands near the
// front needs it, and only graphs scored that way set the best, are expanded, or are handed back.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "search/derived_graphs.h"
#include "search/rewrite_trail.h"
#include "search/scored_graph.h"

namespace ag {

struct RankedGraph {
  Graph graph;
  double estimate_ns = 0;
  int step = RewriteTrail::kInput;  // In the trail.
};

class Backtracking {
 public:
  // How many graphs at the front of the queue are kept measured: enough to fill a batch, few enough
  // that little is measured for graphs that are never expanded.
  static constexpr size_t kLookAhead = 16;
  // A rewrite may not grow the graph beyond kGrowthMax x the input + kGrowthSlack nodes (TASO's
  // limit is the factor alone; the slack is for tiny graphs).
  static constexpr int kGrowthMax = 2;
  static constexpr int kGrowthSlack = 16;

  // Borrows both; they outlive it. One object serves one Run.
  Backtracking(const SearchSetting& setting, RewriteTrail& trail);

  // Returns up to limits.candidates_max graphs with the least estimates, ascending, cleaned up,
  // without `root` and those whose structure is in `skip`.
  std::vector<RankedGraph> Run(const RankedGraph& root,
                               const absl::flat_hash_set<StructureHash>& skip);

  // Why Run ended. kNone: no graph below beta x best was left. kGroups: likewise, but some
  // estimates stayed estimates because no more groups may be measured.
  StopReason stop() const { return stop_; }

 private:
  struct Entry {
    DerivedGraphs::Id graph = -1;
    int parent = RewriteTrail::kInput;  // Steps in the trail; own is -1 until it is settled.
    int step = -1;
    double parent_ns = 0;
    const Rule* rule = nullptr;
    int turns = 0;  // How often its groups were measured.
  };
  using Key = std::pair<double, StructureHash>;  // Estimate, then hash: one order, always.

  StopReason LimitReached();
  StopReason GraphLimitReached();
  void Expand(const Key& key, const Entry& entry);
  StatusOr<ChildGraph> MakeChild(const Rewrite& rewrite, ChildGraphs* children);
  void AddChild(const Key& parent_key, const Entry& parent, Rewrite rewrite, ChildGraph child);
  void SettleFront();
  void SettleEstimated(const std::vector<std::pair<Key, Entry>>& estimated, bool wait);
  std::vector<std::pair<Key, Entry>> TakeUnsettledFront();
  void Settle(const Graph& graph, const Key& key, Entry entry);
  void Offer(const Graph& graph, const Key& key, int step);
  std::vector<RankedGraph> TakeBest();
  double BoundNs() const { return setting_.request.options.beta * best_ns_; }

  const SearchSetting& setting_;
  const SearchLimits& limits_;
  RewriteTrail& trail_;
  const absl::flat_hash_set<StructureHash>* skip_ = nullptr;
  StopReason stop_ = StopReason::kNone;
  SearchCounts begin_;  // Counts when Run began.
  double best_ns_ = 0;  // Least settled estimate.
  int settled_ = 0;     // How many graphs have been settled.
  DerivedGraphs graphs_;
  std::map<Key, Entry> queue_;
  absl::flat_hash_set<StructureHash> seen_;  // Also what was dropped.
  std::map<Key, RankedGraph> best_;
};

}  // namespace ag
