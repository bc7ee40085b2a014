// A graph's groups with the estimate by which the search compares graphs. Plans are made from the
// same times. ScoreGraph and EstimateNs are thread-safe, the rest is not.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "base/thread_pool.h"
#include "plan/fusion/grouping.h"
#include "plan/schedule/planner.h"
#include "search/pair_times.h"
#include "search/search_run.h"

namespace ag {

// The shared parts of one search. All references must outlive it.
struct SearchSetting {
  const SearchRequest& request;
  const RuleSet& rules;  // The rules that the policy allows.
  LearnedTimes& times;
  PairTimes& pairs;
  SearchRun& run;
  ThreadPool& pool;
  // The layout that contractions of every graph prefer; nothing: the cheapest by group times.
  std::optional<Layout> layout = std::nullopt;

  // What groups or plans of the graph are made for.
  PlanRequest For(const Graph& graph, GroupingOptions grouping = {}, int streams = 1,
                  int streams_min = 0) const {
    if (!grouping.layout) grouping.layout = layout;
    return {graph, request.spec, request.policy, grouping, streams, pairs.overlap(), streams_min};
  }
};

// The estimate and the makespan of what needs a group whose measurement failed.
inline constexpr double kNoTimeNs = std::numeric_limits<double>::infinity();

// Whether an estimate is below another one. Sums of the same terms in another order differ by less.
inline bool IsGain(double ns, double than_ns) { return ns < than_ns * (1 - 1e-9); }

// Returns the most streams of a plan.
int StreamsMax(const SearchRequest& request);

struct ScoredGraph {
  // The makespan of the better one of two schedules, one stream and GreedyStreams on the most,
  // where groups take the same time on each (DeviceSpec::block_outputs); else MixedEstimateNs, the
  // paper's. Constant recipes are in no group and cost nothing.
  double estimate_ns = 0;
  BriefGroups groups;       // Of the cover.
  bool has_failed = false;  // The graph needs a group whose measurement failed.
};

// Returns the score of the best cover of `graph` by the times known now; measures nothing.
// kUnimplemented: the device lacks an operator of the graph.
StatusOr<ScoredGraph> ScoreGraph(const Graph& graph, const SearchSetting& setting);
// The same of several graphs, by the threads of setting.pool.
std::vector<StatusOr<ScoredGraph>> ScoreGraphs(const std::vector<Graph>& graphs,
                                               const SearchSetting& setting);
// Marks its groups whose time is an estimate for setting.times.MeasureWanted.
void WantUnmeasured(const Graph& graph, const ScoredGraph& scored, const SearchSetting& setting);
// Returns the estimate of a score, and of a graph; kNoTimeNs: there is none.
double EstimateOf(const StatusOr<ScoredGraph>& scored);
double EstimateNs(const Graph& graph, const SearchSetting& setting);

}  // namespace ag
