#include "search/pair_times.h"

#include <utility>

#include "plan/schedule/contention_model.h"
#include "plan/schedule/makespan.h"
#include "plan/schedule/schedule_problem.h"

namespace ag {
namespace {

// Views take no time and reorders have no pattern of the spec; neither is timed in a pair.
bool MayBePaired(const Group& group) {
  return group.pattern != kViewPattern && group.pattern != kReorderPattern;
}

int StreamCoresOf(const Plan& plan, int group) {
  for (const Stream& stream : plan.streams) {
    for (const Launch& launch : stream.launches) {
      if (launch.group == group) return stream.cores;
    }
  }
  return 0;
}

}  // namespace

PairTimes::PairTimes(const DeviceSpec& spec, Measurer& measurer, int pairs_max)
    : spec_(spec), measurer_(measurer), pairs_max_(spec.block_outputs > 0 ? pairs_max : 0) {}

std::vector<PairTimes::Wanted> PairTimes::Choose(const Graph& graph, const TimedPlan& timed) {
  const Plan& plan = timed.plan;
  const std::vector<GroupTime>& times = timed.times;
  std::vector<Wanted> chosen;
  for (const OverlappingPair& beside :
       OverlappingPairs(graph, plan, NsOf(times), spec_, ContentionOf(times, overlap_))) {
    if (asked_ + static_cast<int>(chosen.size()) >= pairs_max_) break;
    if (!MayBePaired(plan.groups[beside.first]) || !MayBePaired(plan.groups[beside.second])) {
      continue;
    }
    Wanted wanted;
    for (size_t i = 0; i < 2; ++i) {
      const int g = i == 0 ? beside.first : beside.second;
      const Group& group = plan.groups[g];
      wanted.problem.groups[i] = ExtractGroup(graph, group, plan.policy);
      wanted.problem.kernels[i] = group.kernel;
      wanted.time.ns[i] = times[g].ns;
      wanted.time.cores[i] =
          ShareOf(graph, group, StreamCoresOf(plan, g), times[g].active_cores, spec_);
    }
    // The model is symmetric, so the order of the times does not matter.
    wanted.problem = MakePair(std::move(wanted.problem));
    if (known_.insert(EncodePairProblem(wanted.problem)).second) {
      chosen.push_back(std::move(wanted));
    }
  }
  return chosen;
}

bool PairTimes::Learn(const Graph& graph, const TimedPlan& plan) {
  const std::vector<Wanted> chosen = Choose(graph, plan);
  if (chosen.empty()) return false;
  std::vector<PairProblem> problems;
  for (const Wanted& wanted : chosen) problems.push_back(wanted.problem);
  const std::vector<StatusOr<Measurement>> results = measurer_.MeasurePairs(problems);
  AG_CHECK(results.size() == chosen.size());
  for (size_t i = 0; i < chosen.size(); ++i) {
    Status status = results[i].status();
    if (status.code() == StatusCode::kCancelled) continue;  // Says nothing about the pair.
    ++asked_;
    if (status.ok()) status = CheckMeasurement(*results[i]);
    if (!status.ok()) {
      if (failure_.ok()) failure_ = status;
      continue;
    }
    times_.push_back(chosen[i].time);
    times_.back().together_ns = results[i]->latency.median_ns;
  }
  const double before = std::exchange(overlap_, FitOverlap(times_, spec_.cores));
  return overlap_ != before;
}

}  // namespace ag
