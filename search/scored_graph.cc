#include "search/scored_graph.h"

#include <utility>

namespace ag {

namespace {

// Adds the time of `group` to `scored`. `time` is the answer that FormGroups got, if known.
void AddTime(const Graph& graph, const SearchSetting& setting, const GroupTime* time, Group* group,
             ScoredGraph* scored) {
  const bool is_view = group->pattern == kViewPattern;
  if (is_view || (time != nullptr && time->measured)) {
    scored->group_ns.push_back(is_view ? 0 : time->ns);
    scored->busy_cores.push_back(is_view ? 0 : time->busy_cores);
    return;
  }
  GroupProblem problem = ExtractGroup(graph, *group, setting.request.policy);
  const GroupTimesCache::Known known = setting.times.Find(problem);
  scored->group_ns.push_back(known.time.ns);
  scored->busy_cores.push_back(known.time.busy_cores);
  switch (known.state) {
    case GroupTimesCache::State::kMeasured:
      group->kernel = known.time.kernel;
      return;
    case GroupTimesCache::State::kUnknown:
      scored->unmeasured.push_back(std::move(problem));
      return;
    case GroupTimesCache::State::kFailed:
      break;
  }
  if (scored->failure.ok()) {
    scored->failure = Within(known.failure, fmt::format("group {}", group->pattern));
  }
}

}  // namespace

ScoredGraph ScoreGroups(const Graph& graph, const SearchSetting& setting,
                        std::vector<Group> groups) {
  ScoredGraph scored;
  for (Group& group : groups) AddTime(graph, setting, nullptr, &group, &scored);
  scored.groups = std::move(groups);
  return scored;
}

StatusOr<ScoredGraph> ScoreGraph(const Graph& graph, const SearchSetting& setting,
                                 const GroupingOptions& options) {
  const SearchRequest& request = setting.request;
  GroupingOptions grouping = options;
  if (!grouping.layout) grouping.layout = setting.layout;
  AG_LET(TimedGroups timed,
         FormTimedGroups(graph, request.spec, request.policy, setting.times, grouping));
  ScoredGraph scored;
  for (size_t i = 0; i < timed.groups.size(); ++i) {
    AddTime(graph, setting, &timed.times[i], &timed.groups[i], &scored);
  }
  scored.groups = std::move(timed.groups);
  scored.estimate_ns =
      MixedEstimateNs(graph, scored.groups, scored.group_ns, request.options.alpha);
  return scored;
}

StatusOr<ScoredGraph> ScoreMeasured(const Graph& graph, const SearchSetting& setting,
                                    const GroupingOptions& options) {
  for (int turn = 0;; ++turn) {
    AG_LET(ScoredGraph scored, ScoreGraph(graph, setting, options));
    const bool is_settled = scored.unmeasured.empty() || turn == kCoverTurnsMax;
    if (is_settled || setting.times.Exhausted()) return scored;
    for (const GroupProblem& problem : scored.unmeasured) setting.times.Want(problem);
    setting.run.Report("measuring groups");
    setting.times.MeasureWanted();
  }
}

}  // namespace ag
