#include "search/scored_graph.h"

#include <algorithm>
#include <numeric>

#include "plan/fusion/grouping.h"
#include "plan/schedule/greedy_streams.h"
#include "plan/schedule/makespan.h"
#include "plan/schedule/schedule_problem.h"

namespace ag {

namespace {

double NsOfGroups(const Graph& graph, const BriefGroups& brief, const SearchSetting& setting) {
  const SearchRequest& request = setting.request;
  const bool is_ours = request.options.method == SearchMethod::kOurs;
  if (!is_ours || request.spec.block_outputs <= 0) {
    return MixedEstimateNs(graph, brief, request.options.alpha);
  }
  const TimedGroups timed =
      WholeGroups({graph, request.spec, request.policy}, brief, setting.times);
  const std::vector<double> ns = NsOf(timed.times);
  const double one_stream_ns = std::accumulate(ns.begin(), ns.end(), 0.0);
  const int streams = StreamsMax(request);
  if (streams < 2) return one_stream_ns;
  const ScheduleProblem problem =
      MakeScheduleProblem(graph, timed.groups, ns, request.spec, request.policy, streams,
                          ContentionOf(timed.times, setting.pairs.overlap()));
  return std::min(one_stream_ns, MakespanNs(problem, GreedyStreams(problem)));
}

}  // namespace

int StreamsMax(const SearchRequest& request) {
  const int wish = request.options.streams_max;
  const int streams =
      wish > 0 ? std::min(wish, request.spec.streams_max) : request.spec.streams_max;
  return std::min(streams, request.spec.cores);
}

StatusOr<ScoredGraph> ScoreGraph(const Graph& graph, const SearchSetting& setting) {
  const PlanRequest request = setting.For(graph);
  AG_LET(BriefGroups groups,
         FormBriefGroups(graph, request.spec, request.policy, setting.times, request.grouping));
  ScoredGraph scored{.estimate_ns = NsOfGroups(graph, groups, setting)};
  scored.has_failed = std::ranges::any_of(groups.groups, [](const BriefGroup& group) {
    return group.time.state == TimeState::kFailed;
  });
  scored.groups = std::move(groups);
  return scored;
}

std::vector<StatusOr<ScoredGraph>> ScoreGraphs(const std::vector<Graph>& graphs,
                                               const SearchSetting& setting) {
  std::vector<StatusOr<ScoredGraph>> scores(graphs.size(), ScoredGraph());
  setting.pool.Each(static_cast<int>(graphs.size()), [&](int i, int) {
    scores[static_cast<size_t>(i)] = ScoreGraph(graphs[static_cast<size_t>(i)], setting);
  });
  return scores;
}

void WantUnmeasured(const Graph& graph, const ScoredGraph& scored, const SearchSetting& setting) {
  const BriefSetting brief{graph, setting.request.spec, setting.request.policy};
  for (const GroupProblem& problem : UnmeasuredOf(brief, scored.groups)) {
    setting.times.Want(problem);
  }
}

double EstimateOf(const StatusOr<ScoredGraph>& scored) {
  return scored.ok() && !scored->has_failed ? scored->estimate_ns : kNoTimeNs;
}

double EstimateNs(const Graph& graph, const SearchSetting& setting) {
  return EstimateOf(ScoreGraph(graph, setting));
}

}  // namespace ag
