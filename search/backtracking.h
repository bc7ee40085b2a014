// Best-first backtracking over rewrites of one graph (MetaFlow, TASO, AutoGraph): the graph with
// the least estimate is taken next, its rewrites are made, and what is below beta x best stays.
//
// Rewrites that do not touch each other commute, so of all the graphs that their combinations make
// only those are followed that can lead to something new (ADR 002):
// - Of the gains that a graph offers the largest is taken first. Another one that is still there
//   afterwards is taken there, and not beside it.
// - A rewrite that does not gain is a detour: what follows, at most limits.detour_max in a row, is
//   near it, until the estimate is below the one where the detour began.
// - A rewrite whose gain is known from an ancestor is made when the surroundings of the last gain
//   have been looked at.
//
// Estimates become measurements lazily. A new graph is scored with what is known; before the next
// graph is taken, the first kLookAhead graphs of the queue have the groups they would run measured
// in one batch and are scored again. So a group is measured only when a graph that stands near the
// front needs it, and only graphs scored that way set the best, are expanded, or are handed back.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
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
    int step = -1;    // In the trail; -1 until it is settled.
    int parent = -1;  // In expanded_; -1: the root.
    const Rule* rule = nullptr;
    int64_t serial = 0;  // Of the rewrite that made it.
    int turns = 0;       // How often its groups were measured.
  };
  using Key = std::pair<double, StructureHash>;  // Estimate, then hash: one order, always.

  // A graph that was expanded, with what says which of its children are worth following.
  struct Expanded {
    DerivedGraphs::Id graph = -1;
    int step = -1;
    double estimate_ns = 0;
    double goal_ns = 0;   // A child below it is a gain: the least estimate met on the way here and
                          // among the children expanded so far.
    int best_child = -1;  // The child that set goal_ns.
    int detour = 0;       // Rewrites since the last gain.
    // Where a detour may go on: rewrites with serials above `old_serial` or at nodes of `area`.
    int64_t old_serial = 0;
    std::vector<bool> area;                     // By node; empty: not a detour.
    std::vector<int64_t> serials;               // Of its sites, in their order.
    std::vector<int64_t> kept;                  // The same, ascending.
    std::vector<std::pair<double, int>> later;  // Promised estimate and site, the least last.
  };

  StopReason LimitReached();
  StopReason GraphLimitReached();
  bool HasLater() const;
  bool HasGain() const;
  void TakeLater();
  void Visit(const Key& key, const Entry& entry);
  bool IsWanted(int parent, int64_t serial) const;
  bool IsNear(const Expanded& node, int i, const Site& site) const;
  std::vector<bool> AreaOf(DerivedGraphs::Id graph, const std::vector<bool>& parents);
  std::shared_ptr<const MatchSet> Matches(const Expanded& node);
  int64_t SerialOf(const Site& site) const;
  void Expand(int id);
  void FollowAll(int parent, const std::vector<int>& sites);
  void FollowOthers(int parent);
  StatusOr<ChildGraph> MakeChild(const Rewrite& rewrite, ChildGraphs* children);
  void AddChild(int parent, int64_t serial, Rewrite rewrite, ChildGraph child);
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
  std::vector<Expanded> expanded_;
  int without_gain_ = 0;  // Expansions since best_node_ changed or a gain was taken.
  int best_node_ = -1;    // In expanded_: the least estimate.
  absl::flat_hash_map<int64_t, double> gain_ns_;  // By serial: child's estimate less its parent's.
  absl::flat_hash_map<int64_t, int64_t> first_serial_;  // Of matches that were found again.
};

}  // namespace ag
