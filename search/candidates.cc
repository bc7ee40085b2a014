#include "search/candidates.h"

#include <algorithm>
#include <utility>

namespace ag {
namespace {

PlanCandidate CandidateOf(const Graph& graph, const SearchSetting& setting, TimedPlan made) {
  made.plan.environment = setting.request.environment;
  return {{graph, std::move(made.plan)}, made.makespan_ns};
}

// Times pairs of groups that the plan would run beside each other. Returns true when that changed
// the overlap, and so the makespans of all plans.
bool LearnPairs(const Graph& graph, const TimedPlan& plan, const SearchSetting& setting) {
  if (!setting.pairs.CanLearn() || setting.run.Over() || !plan.unmeasured.empty()) return false;
  setting.run.Report("measuring pairs of groups");
  const bool changed = setting.pairs.Learn(graph, plan);
  const Status& failure = setting.pairs.failure();
  const bool says_nothing = failure.ok() || failure.code() == StatusCode::kUnimplemented;
  if (!says_nothing) setting.run.Warn("two groups together: " + Message(failure));
  return changed;
}

}  // namespace

StatusOr<PlanCandidate> MakeOneStreamPlan(const Graph& graph, const SearchSetting& setting,
                                          const OneStreamOptions& options) {
  const PlanRequest request =
      setting.For(graph, {.grouped = options.grouped, .mixed_layouts = true});
  AG_LET(TimedPlan made, options.grouped ? MakeMeasuredPlan(request, setting.times)
                                         : MakeTimedPlan(request, setting.times));
  if (!options.allow_failed) AG_TRY(made.failure);
  return CandidateOf(graph, setting, std::move(made));
}

StatusOr<PlanCandidate> MakeGuessedPlan(const Graph& graph, const SearchSetting& setting) {
  const SearchRequest& request = setting.request;
  RooflineTimes times(request.spec);
  AG_LET(TimedPlan made, MakeTimedPlan({graph, request.spec, request.policy, {}, 1}, times));
  return CandidateOf(graph, setting, std::move(made));
}

std::optional<PlanCandidate> MakeStreamsPlan(const Graph& graph, const SearchSetting& setting,
                                             double below_ns) {
  // Uses estimates first, then measures the leader's groups until the leader has only measured
  // groups.
  std::vector<std::optional<TimedPlan>> trials;  // Entry i: i + 2 streams.
  const auto attempt = [&](int streams) -> std::optional<TimedPlan> {
    StatusOr<TimedPlan> trial =
        MakeTimedPlan(setting.For(graph, {.mixed_layouts = true}, streams), setting.times);
    if (!trial.ok() || trial->makespan_ns >= below_ns) return std::nullopt;
    return *std::move(trial);
  };
  for (int n = 2; n <= StreamsMax(setting.request); ++n) trials.push_back(attempt(n));
  const auto makespan = [](const std::optional<TimedPlan>& trial) {
    return trial ? trial->makespan_ns : kNoTimeNs;
  };
  const int turns_max = kCoverTurnsMax * static_cast<int>(trials.size());
  for (int turn = 0;; ++turn) {
    const auto leader = std::ranges::min_element(trials, {}, makespan);
    if (leader == trials.end() || !*leader) return std::nullopt;
    const std::vector<GroupProblem>& unmeasured = (*leader)->unmeasured;
    if (unmeasured.empty() || turn >= turns_max || setting.times.Exhausted()) {
      if (!LearnPairs(graph, **leader, setting)) {
        return CandidateOf(graph, setting, *std::move(*leader));
      }
      for (size_t i = 0; i < trials.size(); ++i) trials[i] = attempt(static_cast<int>(i) + 2);
      continue;
    }
    for (const GroupProblem& problem : unmeasured) setting.times.Want(problem);
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
