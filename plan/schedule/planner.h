// The planner: makes the complete plan of a graph by group times. The search, the server and the
// runtime make every plan here. Pure functions, apart from what the times measure.
#pragma once

#include <string_view>
#include <vector>

#include "plan/fusion/grouping.h"
#include "plan/fusion/learned_times.h"
#include "plan/schedule/contention_model.h"
#include "plan/schedule/schedule.h"

namespace ag {

// What a plan is made for. All references must outlive the call.
struct PlanRequest {
  const Graph& graph;
  const DeviceSpec& spec;
  const Policy& policy;
  GroupingOptions grouping = {};  // Its `cores` follow from `streams` where these are several.
  int streams = 1;
  double overlap =
      1;  // How groups beside each other share the cores (plan/schedule/contention_model.h).
  // Plans are made on streams_min to `streams` streams; 0: on `streams`. REQUIRES: StreamCores is
  // the same for all of them.
  int streams_min = 0;
};

struct TimedPlan {
  Plan plan;                     // Complete and validated; `environment` stays empty.
  std::string_view scheduler;    // Who made its streams (plan/schedule/schedulers.h).
  std::vector<GroupTime> times;  // By group; 0 for a view.
  double makespan_ns = 0;        // Simulated; infinity: a group's measurement failed.
  // The groups that were chosen by an estimate: a plan with measured ones may be another.
  std::vector<GroupProblem> unmeasured;
  Status failure;  // Not OK: the measurement of a group that was chosen failed.
};

// Returns plans by the answers of `times`, at most `plans_max` and at least one, the earliest
// simulated end first. Of several streams they are the best of SchedulesOf, each by another
// scheduler, or one plan on one stream where no scheduler uses more; on a spec that lets a group
// take all cores those of GreedyWideStreams. A schedule that PlaceTensors refuses is left out.
// kUnimplemented: the device lacks an operator. Other errors: those of PlaceTensors. REQUIRES:
// plans_max >= 1.
StatusOr<std::vector<TimedPlan>> MakeTimedPlans(const PlanRequest& request, GroupTimes& times,
                                                size_t plans_max);
// Returns the first of them.
StatusOr<TimedPlan> MakeTimedPlan(const PlanRequest& request, GroupTimes& times);

// Does the same with measured groups: measures the chosen groups and chooses again, until all are
// measured. When no more groups may be measured, or kCoverTurnsMax turns were made, it chooses once
// more and counts estimates twice.
StatusOr<TimedPlan> MakeMeasuredPlan(const PlanRequest& request, LearnedTimes& times);

// Returns the plan of what measures nothing, by RooflineTimes, on streams_min to `streams` streams.
// From one stream on: several, at most kGuessedStreamsMax, are taken only where they promise a
// gain, the spec lets a group take one core or all (`stream_cores`) and operators are grouped.
StatusOr<TimedPlan> GuessPlan(const PlanRequest& request);
inline constexpr int kGuessedStreamsMax = 4;

// Returns the groups of MakeMeasuredPlan on one stream.
StatusOr<TimedGroups> FormMeasuredGroups(const PlanRequest& request, LearnedTimes& times);

// The most times that groups are chosen again after they were measured. Each turn replaces
// estimates by measurements, mostly of the same few alternatives, so two or three turns are enough.
inline constexpr int kCoverTurnsMax = 8;

// Returns the problems of the groups whose time is an estimate.
std::vector<GroupProblem> UnmeasuredOf(const Graph& graph, const Policy& policy,
                                       const TimedGroups& timed);

// Returns the same of groups in brief.
std::vector<GroupProblem> UnmeasuredOf(const BriefSetting& setting, const BriefGroups& groups);

// Whether there are none: every group that is launched was measured, or its measurement failed.
bool IsMeasured(const BriefGroups& groups);

// Returns why the first group whose measurement failed did so, or OK.
Status FailureOf(const TimedGroups& timed);

// A way to run a batch: in `instances` equal parts, `beside` of them beside each other.
struct BatchParts {
  int32_t instances = 1;
  int32_t beside = 1;
  bool operator==(const BatchParts&) const = default;
};
inline constexpr int kBatchPartsMax = 8;

// Returns the cores of each of `beside` runs, for GroupingOptions: those of a stream where the spec
// says so, else an even share; 0, all, of one alone.
int CoresBeside(const DeviceSpec& spec, int32_t beside);

// Returns the ways that may be faster than the plan `whole` of a batch, the likeliest first, at
// most kBatchPartsMax (docs/adr/013, 017): beside each other where the spec lets a group take one
// core or all (`stream_cores`), and one after the other, on 1 to 16 samples, where the device has a
// last-level cache and the memory between the groups is more than fits there.
std::vector<BatchParts> PartsToTry(const Plan& whole, const DeviceSpec& spec, int64_t batch);

// Returns the plan of MakeTimedPlan alone.
StatusOr<Plan> MakePlan(const Graph& graph, const DeviceSpec& spec, const Policy& policy,
                        GroupTimes& times, const GroupingOptions& grouping, int streams);

}  // namespace ag
