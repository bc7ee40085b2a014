#include "search/scored_graph.h"

#include "plan/fusion/group_dependencies.h"
#include "plan/fusion/grouping.h"

namespace ag {

StatusOr<ScoredGraph> ScoreGraph(const Graph& graph, const SearchSetting& setting) {
  const PlanRequest request = setting.For(graph);
  AG_LET(const TimedGroups timed,
         FormTimedGroups(graph, request.spec, request.policy, setting.times, request.grouping));
  const double alpha = setting.request.options.alpha;
  return ScoredGraph{.estimate_ns = MixedEstimateNs(graph, timed.groups, NsOf(timed.times), alpha),
                     .unmeasured = UnmeasuredOf(graph, request.policy, timed),
                     .failure = FailureOf(timed)};
}

}  // namespace ag
