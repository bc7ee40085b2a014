// Best-first backtracking over rewrites of one graph (MetaFlow, TASO, AutoGraph). The graph with
// the least estimate is expanded next: its rewrites are made, and graphs below beta x best stay in
// the queue. One thread at a time.
//
// Rewrites that do not touch each other commute, so n of them make 2^n graphs. The search follows
// only combinations that can lead to something new (ADR 002):
//   - Of the gains that a graph offers, the largest is taken first. Another gain that still exists
//     after it is taken there, not beside it.
//   - A rewrite without a gain begins a detour: at most limits.detour_max rewrites in a row, each
//     near the one before, until the estimate is below the one at the beginning of the detour.
//   - A rewrite whose gain is known from an ancestor is made after the surroundings of the last
//     gain were searched.
//
// Estimates become measurements lazily. A new graph is scored with the known times. Before the next
// graph is expanded, the first kLookAhead graphs of the queue have their groups measured in one
// batch and are scored again. So a group is measured only for a graph near the front. Only graphs
// scored in this way (*settled* ones) set the best, are expanded, or are returned.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "search/best_estimate.h"
#include "search/best_graphs.h"
#include "search/derived_graphs.h"
#include "search/scored_children.h"
#include "search/scored_graph.h"

namespace ag {

class Backtracking {
 public:
  // The number of graphs at the front of the queue that are kept measured: enough to fill a batch,
  // and few enough that little is measured for graphs that are never expanded.
  static constexpr size_t kLookAhead = 16;
  // The most nodes after a rewrite: kGrowthMax x the input + kGrowthSlack (TASO has only the
  // factor; the slack is for tiny graphs).
  static constexpr int kGrowthMax = 2;
  static constexpr int kGrowthSlack = 16;
  static int NodesMax(const SearchRequest& request) {
    return kGrowthMax * request.input.size() + kGrowthSlack;
  }

  // Both must outlive it. One object serves one Run.
  Backtracking(const SearchSetting& setting, RewriteTrail& trail);

  // Returns up to limits.candidates_max graphs with the least estimates, ascending and cleaned up,
  // without `root` and without graphs whose structure is in `skip`. Scores at most `graphs_max`
  // graphs, no more than limits.graphs_total_max, and expands none after
  // limits.stale_graphs_max graphs that did not lower the least estimate.
  std::vector<RankedGraph> Run(const RankedGraph& root,
                               const absl::flat_hash_set<StructureHash>& skip, int graphs_max);

  // Returns why Run ended. kNone: no graph below beta x best was left. kGroups: the same, but some
  // estimates could not become measurements, because no more groups may be measured.
  StopReason stop() const { return stop_; }

 private:
  struct Entry {
    DerivedGraphs::Id graph = -1;
    int step = -1;        // In the trail; -1: not settled.
    int parent = -1;      // In expanded_; -1: the root.
    Rewrite rewrite;      // What made the graph.
    int64_t serial = 0;   // Its serial.
    int turns = 0;        // Number of times its groups were measured.
    int64_t version = 0;  // LearnedTimes::version() when it was scored.
  };

  // An expanded graph, with the facts that decide which of its children to follow.
  struct Expanded {
    DerivedGraphs::Id graph = -1;
    int step = -1;
    double estimate_ns = 0;
    // A child below it is a gain: the least estimate on the way here and among the children
    // expanded so far.
    double goal_ns = 0;
    int best_child = -1;  // The child that set goal_ns.
    int detour = 0;       // Rewrites since the last gain.
    // Where a detour may continue: rewrites with serials above `old_serial`, or at nodes of `area`.
    int64_t old_serial = 0;
    std::vector<bool> area;                     // By node; empty: not a detour.
    std::vector<int64_t> serials;               // Serials of its sites, in their order.
    std::vector<int64_t> kept;                  // The same serials, ascending.
    std::vector<std::pair<double, int>> later;  // Promised estimate and site, the least last.
  };

  StopReason GraphLimitReached();
  bool ExpansionLimitReached() const;
  bool HasLater() const;
  bool HasGain() const;
  int GraphsWithoutGain() const { return setting_.run.counts.graphs - graphs_at_gain_; }
  void TakeLater();
  std::optional<Expanded> NodeOf(const GraphKey& key, const Entry& entry);
  void Visit(const Entry& entry, Expanded node);
  bool IsWanted(int parent, int64_t serial) const;
  bool IsNear(const Expanded& node, int i, const Site& site) const;
  std::vector<bool> AreaOf(DerivedGraphs::Id graph, const std::vector<bool>& parents);
  std::shared_ptr<const MatchSet> Matches(const Expanded& node);
  int64_t SerialOf(const Site& site) const;
  void Expand(int id);
  void FollowAll(int parent, const std::vector<int>& sites);
  void FollowOthers(int parent);
  void AddChild(int parent, int64_t serial, ScoredChild child);
  void SettleFront();
  void SettleEstimated(const std::vector<std::pair<GraphKey, Entry>>& estimated, bool wait);
  std::vector<std::pair<GraphKey, Entry>> TakeUnsettledFront();
  void Settle(const Graph& graph, const GraphKey& key, Entry entry);
  void Offer(const Graph& graph, const GraphKey& key, int step);
  double BoundNs() const { return setting_.request.options.beta * least_.ns(); }

  const SearchSetting& setting_;
  const SearchLimits& limits_;
  RewriteTrail& trail_;
  const absl::flat_hash_set<StructureHash>* skip_ = nullptr;
  StopReason stop_ = StopReason::kNone;
  SearchCounts begin_;  // The counts at Run's begin.
  int graphs_max_ = 0;
  BestEstimate least_;  // Of the settled graphs.
  int settled_ = 0;     // Their number.
  DerivedGraphs graphs_;
  std::map<GraphKey, Entry> queue_;
  absl::flat_hash_set<StructureHash> seen_;  // Also of dropped graphs.
  BestGraphs best_;
  std::vector<Expanded> expanded_;
  int graphs_at_gain_ = 0;  // Graphs scored when best_node_ changed or a later gain was taken.
  int best_node_ = -1;      // The least estimate in expanded_; -1: none.
  // By serial: the child's estimate minus its parent's.
  absl::flat_hash_map<int64_t, double> gain_ns_;
  // Serials of matches that were found again, to their first ones.
  absl::flat_hash_map<int64_t, int64_t> first_serial_;
};

}  // namespace ag
