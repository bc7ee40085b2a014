#include "plan/schedule/planner.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "plan/fusion/grouping.h"
#include "plan/schedule/contention_model.h"
#include "plan/schedule/greedy_streams.h"
#include "plan/schedule/makespan.h"
#include "plan/schedule/schedulers.h"

namespace ag {
namespace {

// The groups of a plan before they have streams: for all cores or for one stream's, or for both
// where a group may take either.
struct GroupsToPlan {
  TimedGroups timed;
  std::optional<TimedGroups> narrow = std::nullopt;
  std::vector<GroupProblem> unmeasured = {};
};

int StreamsMinOf(const PlanRequest& request) {
  return request.streams_min > 0 ? request.streams_min : request.streams;
}

// Returns the same groups, each on `cores` cores.
TimedGroups TimeGroups(const PlanRequest& request, std::vector<Group> groups, GroupTimes& times,
                       int cores) {
  TimedGroups timed;
  for (Group& group : groups) {
    group.cores = cores;
    timed.times.emplace_back();
    if (group.pattern == kViewPattern) continue;
    timed.times.back() = times.Time(ExtractGroup(request.graph, group, request.policy));
    if (timed.times.back().measured()) group.kernel = timed.times.back().kernel;
  }
  timed.groups = std::move(groups);
  return timed;
}

StatusOr<GroupsToPlan> ChooseGroups(const PlanRequest& request, GroupTimes& times) {
  const auto& [graph, spec, policy, grouping, streams, overlap, streams_min] = request;
  GroupingOptions options = grouping;
  const bool may_be_wide = spec.stream_cores > 0;
  if (streams > 1 && !may_be_wide) options.cores = StreamCores(spec, streams);
  GroupsToPlan chosen;
  AG_LET(chosen.timed, FormTimedGroups(graph, spec, policy, times, options));
  if (streams > 1 && may_be_wide) {
    chosen.narrow = TimeGroups(request, chosen.timed.groups, times, StreamCores(spec, streams));
    chosen.unmeasured = UnmeasuredOf(graph, policy, *chosen.narrow);
  }
  std::ranges::move(UnmeasuredOf(graph, policy, chosen.timed),
                    std::back_inserter(chosen.unmeasured));
  return chosen;
}

// Groups with streams, and who made these.
struct NamedSchedule {
  std::string_view scheduler;
  Schedule schedule;
};

// Returns the schedules of groups that may take all cores: one for each number of streams.
std::vector<NamedSchedule> WideSchedules(const PlanRequest& request, const GroupsToPlan& chosen) {
  std::vector<NamedSchedule> all;
  for (int streams = StreamsMinOf(request); streams <= request.streams; ++streams) {
    all.push_back({"greedy", GreedyWideStreams(request.graph, *chosen.narrow, chosen.timed,
                                               request.spec, streams)});
  }
  return all;
}

// Returns the streams of groups that all run on the cores of one stream, the best first.
std::vector<SimulatedSchedule> StreamsOf(const PlanRequest& request, const TimedGroups& timed) {
  const auto& [groups, times] = timed;
  std::vector<SimulatedSchedule> ranked;
  if (request.streams > 1) {
    ranked = SchedulesOf(
        MakeScheduleProblem(request.graph, groups, NsOf(times), request.spec, request.policy,
                            request.streams, ContentionOf(times, request.overlap)),
        StreamsMinOf(request));
  }
  if (ranked.empty()) ranked.push_back({Schedulers()[0].name, OneStream(request.graph, groups)});
  return ranked;
}

// Returns `made`, which has what all plans of these groups share, with the plan of one schedule.
StatusOr<TimedPlan> CompleteOne(const PlanRequest& request, NamedSchedule named, TimedPlan made) {
  made.scheduler = named.scheduler;
  made.times = std::move(named.schedule.timed.times);
  AG_LET(made.plan, CompletePlan(request.graph, std::move(named.schedule.timed.groups),
                                 std::move(named.schedule.streams), request.spec, request.policy));
  for (size_t g = 0; g < made.times.size(); ++g) {  // Placement may have made views of groups.
    if (made.plan.groups[g].pattern == kViewPattern) made.times[g] = {};
  }
  made.makespan_ns = made.failure.ok()
                         ? MakespanNs(request.graph, made.plan, NsOf(made.times), request.spec,
                                      ContentionOf(made.times, request.overlap))
                         : std::numeric_limits<double>::infinity();
  return made;
}

StatusOr<std::vector<TimedPlan>> Complete(const PlanRequest& request, GroupsToPlan chosen,
                                          size_t plans_max) {
  TimedPlan common{.unmeasured = std::move(chosen.unmeasured), .failure = FailureOf(chosen.timed)};
  if (common.failure.ok() && chosen.narrow) common.failure = FailureOf(*chosen.narrow);
  std::vector<TimedPlan> plans;
  Status refusal;  // Of the last schedule, for example: it takes too much memory.
  const auto add = [&](NamedSchedule schedule) {
    StatusOr<TimedPlan> plan = CompleteOne(request, std::move(schedule), common);
    if (plan.ok()) {
      plans.push_back(*std::move(plan));
    } else {
      refusal = plan.status();
    }
  };
  if (chosen.narrow) {
    for (NamedSchedule& schedule : WideSchedules(request, chosen)) add(std::move(schedule));
  } else {
    for (SimulatedSchedule& made : StreamsOf(request, chosen.timed)) {
      const bool is_there =
          std::ranges::find(plans, made.scheduler, &TimedPlan::scheduler) != plans.end();
      if (is_there || plans.size() == plans_max) continue;
      add({made.scheduler, {chosen.timed, std::move(made.streams)}});
    }
  }
  if (plans.empty()) return refusal;
  std::ranges::stable_sort(plans, {}, &TimedPlan::makespan_ns);
  if (plans.size() > plans_max) plans.resize(plans_max);
  return plans;
}

// The times of a plan that can be measured no further: an estimate counts kDoubt times. A cover is
// the one that looks best of many, so among estimates the ones that are too low are chosen: of a
// convolution and its activation, measured as one group, the two unmeasured halves.
class DoubtedTimes : public GroupTimes {
 public:
  explicit DoubtedTimes(GroupTimes& times) : times_(times) {}
  GroupTime Time(const GroupProblem& problem) override {
    return Scaled(times_.Time(problem), kDoubt);
  }
  GroupTime TimeOf(const LocalKey& key, MakeProblem make) override {
    return Scaled(times_.TimeOf(key, make), kDoubt);
  }
  static void Undo(TimedGroups* timed) {
    for (GroupTime& time : timed->times) time = Scaled(std::move(time), 1 / kDoubt);
  }

 private:
  static constexpr double kDoubt = 2;
  static GroupTime Scaled(GroupTime time, double factor) {
    if (time.state == TimeState::kEstimated) time.ns *= factor;
    return time;
  }

  GroupTimes& times_;
};

// Estimates of several streams are believed when they take less than this share of the time of
// one. Measured on two cores: an estimate of 0.91 was 0.81 (nasnet_mobile), estimates of 0.975 to
// 0.985 were 0.98 to 1.03 (bench/results/2026-11-29-guessed-streams.md).
constexpr double kGuessedPromise = 0.95;

bool IsEstimated(const TimedGroups& timed, size_t group) {
  return timed.times[group].state == TimeState::kEstimated &&
         timed.groups[group].pattern != kViewPattern;
}

StatusOr<GroupsToPlan> ChooseMeasuredGroups(const PlanRequest& request, LearnedTimes& times) {
  for (int turn = 0;; ++turn) {
    AG_LET(GroupsToPlan chosen, ChooseGroups(request, times));
    if (chosen.unmeasured.empty()) return chosen;
    if (turn == kCoverTurnsMax || times.Exhausted()) break;
    for (const GroupProblem& problem : chosen.unmeasured) times.Want(problem);
    times.MeasureWanted();
  }
  DoubtedTimes doubted(times);
  AG_LET(GroupsToPlan chosen, ChooseGroups(request, doubted));
  DoubtedTimes::Undo(&chosen.timed);
  if (chosen.narrow) DoubtedTimes::Undo(&*chosen.narrow);
  return chosen;
}

}  // namespace

StatusOr<std::vector<TimedPlan>> MakeTimedPlans(const PlanRequest& request, GroupTimes& times,
                                                size_t plans_max) {
  AG_CHECK(plans_max >= 1);
  AG_LET(GroupsToPlan chosen, ChooseGroups(request, times));
  return Complete(request, std::move(chosen), plans_max);
}

StatusOr<TimedPlan> MakeTimedPlan(const PlanRequest& request, GroupTimes& times) {
  AG_LET(std::vector<TimedPlan> plans, MakeTimedPlans(request, times, 1));
  return std::move(plans[0]);
}

StatusOr<TimedPlan> MakeMeasuredPlan(const PlanRequest& request, LearnedTimes& times) {
  AG_LET(GroupsToPlan chosen, ChooseMeasuredGroups(request, times));
  AG_LET(std::vector<TimedPlan> plans, Complete(request, std::move(chosen), 1));
  return std::move(plans[0]);
}

StatusOr<TimedPlan> GuessPlan(const PlanRequest& request) {
  RooflineTimes times(request.spec);
  if (StreamsMinOf(request) > 1) return MakeTimedPlan(request, times);
  PlanRequest one_stream = request, several = request;
  one_stream.streams = 1;
  several.streams = std::min({request.streams, request.spec.cores, kGuessedStreamsMax});
  several.streams_min = 2;
  const bool may_be_several =
      several.streams > 1 && request.spec.stream_cores > 0 && request.grouping.grouped;
  if (!may_be_several) return MakeTimedPlan(one_stream, times);
  AG_LET(GroupsToPlan chosen, ChooseGroups(several, times));
  GroupsToPlan wide{.timed = chosen.timed};
  wide.unmeasured = UnmeasuredOf(request.graph, request.policy, wide.timed);
  AG_LET(std::vector<TimedPlan> plans, Complete(one_stream, std::move(wide), 1));
  StatusOr<std::vector<TimedPlan>> trials = Complete(several, std::move(chosen), 1);
  const double bar_ns = kGuessedPromise * plans[0].makespan_ns;
  if (trials.ok() && trials->front().makespan_ns < bar_ns) plans = *std::move(trials);
  return std::move(plans[0]);
}

StatusOr<TimedGroups> FormMeasuredGroups(const PlanRequest& request, LearnedTimes& times) {
  AG_LET(GroupsToPlan chosen, ChooseMeasuredGroups(request, times));
  return std::move(chosen.timed);
}

std::vector<GroupProblem> UnmeasuredOf(const Graph& graph, const Policy& policy,
                                       const TimedGroups& timed) {
  std::vector<GroupProblem> problems;
  for (size_t g = 0; g < timed.groups.size(); ++g) {
    if (IsEstimated(timed, g)) problems.push_back(ExtractGroup(graph, timed.groups[g], policy));
  }
  return problems;
}

std::vector<GroupProblem> UnmeasuredOf(const BriefSetting& setting, const BriefGroups& groups) {
  std::vector<GroupProblem> problems;
  for (const BriefGroup& group : groups.groups) {
    if (!IsEstimated(group)) continue;
    problems.push_back(
        ExtractGroup(setting.graph, WholeGroup(setting, groups, group), setting.policy));
  }
  return problems;
}

bool IsMeasured(const BriefGroups& groups) {
  return std::ranges::none_of(groups.groups, [](const BriefGroup& g) { return IsEstimated(g); });
}

Status FailureOf(const TimedGroups& timed) {
  for (size_t g = 0; g < timed.groups.size(); ++g) {
    if (timed.times[g].state != TimeState::kFailed) continue;
    return Within(timed.times[g].failure, fmt::format("group {}", timed.groups[g].pattern));
  }
  return OkStatus();
}

int CoresBeside(const DeviceSpec& spec, int32_t beside) {
  if (beside < 2) return 0;
  const int share = std::max(1, spec.cores / beside);
  return spec.stream_cores > 0 ? std::min(spec.stream_cores, share) : share;
}

std::vector<BatchParts> PartsToTry(const Plan& whole, const DeviceSpec& spec, int64_t batch) {
  std::vector<BatchParts> found;
  const auto add = [&](int64_t size, int64_t runs) {
    if (size < 1 || size >= batch || batch % size != 0) return;
    const BatchParts parts{static_cast<int32_t>(batch / size),
                           static_cast<int32_t>(std::min(runs, batch / size))};
    if (std::ranges::find(found, parts) == found.end()) found.push_back(parts);
  };
  const bool is_out_of_cache = spec.cache_bytes > 0 && whole.arena_bytes > spec.cache_bytes;
  const int64_t runs = spec.stream_cores > 0 ? spec.cores / spec.stream_cores : 1;
  if (runs > 1 && !whole.policy.cold_cache) {
    constexpr int64_t kSizeMax = 16;
    add(std::min(batch / std::min(batch, runs), kSizeMax), runs);
    if (is_out_of_cache) {
      add(4, runs);
      add(1, runs);
    }
  }
  if (is_out_of_cache) {
    for (const int64_t size : {4, 1, 8, 2, 16}) add(size, 1);
  }
  return found;
}

StatusOr<Plan> MakePlan(const Graph& graph, const DeviceSpec& spec, const Policy& policy,
                        GroupTimes& times, const GroupingOptions& grouping, int streams) {
  AG_LET(TimedPlan made, MakeTimedPlan({graph, spec, policy, grouping, streams}, times));
  return std::move(made.plan);
}

}  // namespace ag
