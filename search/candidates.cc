#include "search/candidates.h"

#include <algorithm>
#include <utility>

#include "plan/schedule.h"

namespace ag {
namespace {

// Returns the plan with places for `groups` and `streams`, and its simulated makespan.
StatusOr<PlanCandidate> Complete(const Graph& graph, const SearchSetting& setting,
                                 std::vector<Group> groups, std::vector<Stream> streams) {
  const SearchRequest& request = setting.request;
  PlanCandidate candidate{.graph = graph};
  AG_LET(candidate.plan,
         CompletePlan(graph, std::move(groups), std::move(streams), request.spec, request.policy));
  candidate.plan.environment = request.environment;
  // Scored again: placement may have turned groups into views, which take no time.
  ScoredGraph scored = ScoreGroups(graph, setting, std::move(candidate.plan.groups));
  candidate.plan.groups = std::move(scored.groups);
  if (scored.failure.ok()) {
    candidate.makespan_ns = MakespanNs(graph, candidate.plan, scored.group_ns, request.spec,
                                       setting.pairs.SharingOf(scored.busy_cores));
  }
  return candidate;
}

int StreamsMax(const SearchRequest& request) {
  const int wish = request.options.streams_max;
  const int streams =
      wish > 0 ? std::min(wish, request.spec.streams_max) : request.spec.streams_max;
  return std::min(streams, request.spec.cores);
}

struct StreamsTrial {
  ScoredGraph scored;
  PlanCandidate candidate;
};

TimedGroups TimedOf(const ScoredGraph& scored) {
  TimedGroups timed{.groups = scored.groups};
  for (const double ns : scored.group_ns) timed.times.push_back({.ns = ns});
  return timed;
}

// Schedules the cover of one stream, each group on one stream's cores or on all cores.
StatusOr<Schedule> TryWideStreams(const Graph& graph, const SearchSetting& setting, int streams,
                                  StreamsTrial* trial) {
  const DeviceSpec& spec = setting.request.spec;
  AG_LET(ScoredGraph wide, ScoreGraph(graph, setting, {.mixed_layouts = true}));
  AG_TRY(wide.failure);
  std::vector<Group> narrow = wide.groups;
  for (Group& group : narrow) group.cores = StreamCores(spec, streams);
  trial->scored = ScoreGroups(graph, setting, std::move(narrow));
  AG_TRY(trial->scored.failure);
  std::ranges::move(wide.unmeasured, std::back_inserter(trial->scored.unmeasured));
  return GreedyWideStreams(graph, TimedOf(trial->scored), TimedOf(wide), spec, streams);
}

StatusOr<StreamsTrial> TryStreams(const Graph& graph, const SearchSetting& setting, int streams) {
  const DeviceSpec& spec = setting.request.spec;
  StreamsTrial trial;
  Schedule schedule;
  if (spec.stream_cores > 0) {
    AG_LET(schedule, TryWideStreams(graph, setting, streams, &trial));
  } else {
    AG_LET(trial.scored, ScoreGraph(graph, setting,
                                    {.cores = StreamCores(spec, streams), .mixed_layouts = true}));
    AG_TRY(trial.scored.failure);
    schedule.timed.groups = trial.scored.groups;
    schedule.streams = GreedyStreams(graph, trial.scored.groups, trial.scored.group_ns, spec,
                                     streams, setting.pairs.SharingOf(trial.scored.busy_cores));
  }
  AG_LET(trial.candidate,
         Complete(graph, setting, std::move(schedule.timed.groups), std::move(schedule.streams)));
  return trial;
}

// Times pairs of groups that the plan would run beside each other. Returns true when that changed
// the overlap, and so the makespans of all plans.
bool LearnPairs(const PlanCandidate& candidate, const SearchSetting& setting) {
  if (!setting.pairs.CanLearn() || setting.run.Over()) return false;
  const ScoredGraph scored = ScoreGroups(candidate.graph, setting, candidate.plan.groups);
  if (!scored.unmeasured.empty() || !scored.failure.ok()) return false;
  setting.run.Report("measuring pairs of groups");
  const bool changed =
      setting.pairs.Learn(candidate.graph, candidate.plan, scored.group_ns, scored.busy_cores);
  const Status& failure = setting.pairs.failure();
  const bool says_nothing = failure.ok() || failure.code() == StatusCode::kUnimplemented;
  if (!says_nothing) setting.run.Warn("two groups together: " + Message(failure));
  return changed;
}

}  // namespace

StatusOr<PlanCandidate> MakeOneStreamPlan(const Graph& graph, const SearchSetting& setting,
                                          const OneStreamOptions& options) {
  const GroupingOptions grouping{.grouped = options.grouped, .mixed_layouts = true};
  AG_LET(ScoredGraph scored, options.grouped ? ScoreMeasured(graph, setting, grouping)
                                             : ScoreGraph(graph, setting, grouping));
  if (!options.allow_failed) AG_TRY(scored.failure);
  std::vector<Stream> streams = OneStream(graph, scored.groups);
  return Complete(graph, setting, std::move(scored.groups), std::move(streams));
}

std::optional<PlanCandidate> MakeStreamsPlan(const Graph& graph, const SearchSetting& setting,
                                             double below_ns) {
  // Uses estimates first, then measures the leader's groups until the leader has only measured
  // groups.
  std::vector<std::optional<StreamsTrial>> trials;  // Entry i: i + 2 streams.
  const auto attempt = [&](int streams) -> std::optional<StreamsTrial> {
    StatusOr<StreamsTrial> trial = TryStreams(graph, setting, streams);
    if (!trial.ok() || trial->candidate.makespan_ns >= below_ns) return std::nullopt;
    return *std::move(trial);
  };
  for (int n = 2; n <= StreamsMax(setting.request); ++n) trials.push_back(attempt(n));
  const auto makespan = [](const std::optional<StreamsTrial>& trial) {
    return trial ? trial->candidate.makespan_ns : kFailedGroupNs;
  };
  const int turns_max = kCoverTurnsMax * static_cast<int>(trials.size());
  for (int turn = 0;; ++turn) {
    const auto leader = std::ranges::min_element(trials, {}, makespan);
    if (leader == trials.end() || !*leader) return std::nullopt;
    const std::vector<GroupProblem>& unmeasured = (*leader)->scored.unmeasured;
    if (unmeasured.empty() || turn >= turns_max || setting.times.Exhausted()) {
      if (!LearnPairs((*leader)->candidate, setting)) return std::move((*leader)->candidate);
      for (size_t i = 0; i < trials.size(); ++i) trials[i] = attempt(static_cast<int>(i) + 2);
      continue;
    }
    for (const GroupProblem& problem : unmeasured) setting.times.Want(problem);
    setting.run.Report("measuring groups");
    setting.times.MeasureWanted();
    *leader = attempt(2 + static_cast<int>(leader - trials.begin()));
  }
}

StatusOr<std::vector<PlanCandidate>> MakePlans(const Graph& graph, const SearchSetting& setting) {
  std::vector<PlanCandidate> plans;
  AG_LET(PlanCandidate one, MakeOneStreamPlan(graph, setting));
  plans.push_back(std::move(one));
  auto streams = MakeStreamsPlan(graph, setting, plans[0].makespan_ns);
  if (streams) plans.push_back(*std::move(streams));
  return plans;
}

int UsedStreams(const Plan& plan) {
  return static_cast<int>(std::ranges::count_if(
      plan.streams, [](const Stream& stream) { return !stream.launches.empty(); }));
}

}  // namespace ag
