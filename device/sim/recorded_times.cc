#include "device/sim/recorded_times.h"

#include <algorithm>
#include <cmath>

#include "plan/fusion/group_time.h"
#include "plan/schedule/contention_model.h"

namespace ag::sim {
namespace {

// The median is of this many nearest groups; with fewer than kEnough of a kind, the kind is
// widened.
constexpr size_t kNearest = 5;
constexpr size_t kEnough = 3;

double Distance(double a, double b) { return std::abs(a - b); }

// Returns 0 when it was not recorded.
double TimeOf(const RecordedTimes::Kernels& kernels, const std::string& kernel) {
  const auto found = std::ranges::find(kernels, kernel, &std::pair<std::string, double>::first);
  return found == kernels.end() ? 0 : found->second;
}

}  // namespace

StatusOr<RecordedTimes> RecordedTimes::Of(const Recording& recording, const DeviceSpec& spec) {
  RecordedTimes times(spec);
  if (recording.groups.empty()) {
    return Err(StatusCode::kInvalidArgument, "recording: it has no group");
  }
  const Environment& environment = recording.groups[0].environment;
  bool fits = false;
  for (const RecordedGroup& group : recording.groups) {
    if (group.environment != environment) {
      return Err(StatusCode::kInvalidArgument,
                 "recording: expected one environment, got \"{}\" and \"{}\"", environment,
                 group.environment);
    }
    AG_TRY(times.Add(group), "recording");
    const std::string& pattern = group.problem.pattern;
    fits = fits || pattern == kReorderPattern || spec.FindPattern(pattern) != nullptr;
  }
  if (!fits) {
    return Err(StatusCode::kInvalidArgument,
               "recording: none of its {} groups is of a pattern of {}", recording.groups.size(),
               spec.name);
  }
  times.overlap_ = times.FitPairs(recording.pairs);
  return times;
}

Status RecordedTimes::Add(const RecordedGroup& group) {
  const Measurement& m = group.measurement;
  if (m.active_cores > spec_.cores) {
    return Err(StatusCode::kInvalidArgument, "{} active cores, {} has {}", m.active_cores,
               spec_.name, spec_.cores);
  }
  Recorded recorded{m.alternatives, m.kernel, m.active_cores};
  Kernels& kernels = recorded.kernels;
  kernels.emplace(kernels.begin(), m.kernel, m.latency.median_ns);
  std::ranges::stable_sort(kernels, {}, &std::pair<std::string, double>::second);
  Like like = Describe(group.problem);
  like.ratio = kernels[0].second / RooflineNs(group.problem, spec_);
  likes_.push_back(std::move(like));
  groups_[EncodeGroupProblem(group.problem)] = std::move(recorded);
  return OkStatus();
}

double RecordedTimes::FitPairs(const std::vector<RecordedPair>& pairs) const {
  std::vector<PairTime> times;
  for (const RecordedPair& pair : pairs) {
    PairTime time{.together_ns = pair.measurement.latency.median_ns};
    bool is_known = true;
    for (size_t i = 0; i < 2; ++i) {
      const GroupProblem& problem = pair.problem.groups[i];
      const std::string& kernel = pair.problem.kernels[i];
      const Kernels* kernels = Find(problem);
      const double ns = kernels == nullptr ? 0 : TimeOf(*kernels, kernel);
      is_known = is_known && ns > 0;
      time.ns[i] = ns;
      time.cores[i] = ShareOf(problem.graph, SingleGroupPlan(problem).groups[0], problem.cores,
                              ActiveCores(problem, kernel), spec_);
    }
    if (is_known) times.push_back(time);
  }
  return FitOverlap(times, spec_.cores);
}

const RecordedTimes::Recorded* RecordedTimes::FindRecorded(GroupProblem problem,
                                                           int stream_cores) const {
  auto found = groups_.find(EncodeGroupProblem(problem));
  if (found == groups_.end() && problem.cores == 0 && stream_cores > 0) {
    problem.cores = stream_cores;
    found = groups_.find(EncodeGroupProblem(problem));
  }
  return found == groups_.end() ? nullptr : &found->second;
}

const RecordedTimes::Kernels* RecordedTimes::Find(const GroupProblem& problem,
                                                  int stream_cores) const {
  const Recorded* recorded = FindRecorded(problem, stream_cores);
  return recorded == nullptr ? nullptr : &recorded->kernels;
}

int RecordedTimes::ActiveCores(const GroupProblem& problem, const std::string& kernel,
                               int stream_cores) const {
  const Recorded* recorded = FindRecorded(problem, stream_cores);
  if (recorded == nullptr) return EstimateGroup(problem, spec_).active_cores;
  // An executable whose plan names no kernel runs the fastest.
  const std::string& runs = kernel.empty() ? recorded->kernels[0].first : kernel;
  return runs == recorded->measured ? recorded->active_cores : 0;
}

RecordedTimes::Like RecordedTimes::Describe(const GroupProblem& problem) const {
  const Work work = WorkOf(problem);
  const int cores = problem.cores > 0 ? problem.cores : spec_.cores;
  return {.pattern = problem.pattern,
          .precision = problem.precision,
          .cold_cache = problem.cold_cache,
          .log_flops = std::log2(1 + work.flops),
          .log_bytes = std::log2(1 + work.bytes),
          .log_cores = std::log2(cores)};
}

double RecordedTimes::EstimateNs(const GroupProblem& problem) const {
  const Like wanted = Describe(problem);
  // The number of shared marks of kind; kind counts before size.
  const auto kind = [&](const Like& like) {
    return (like.pattern == wanted.pattern ? 4 : 0) + (like.precision == wanted.precision ? 2 : 0) +
           (like.cold_cache == wanted.cold_cache ? 1 : 0);
  };
  std::vector<std::pair<double, double>> near;  // Distance, ratio.
  for (int least = 7; least >= 0 && near.size() < kEnough; --least) {
    near.clear();
    for (const Like& like : likes_) {
      if (kind(like) < least) continue;
      near.emplace_back(Distance(like.log_flops, wanted.log_flops) +
                            Distance(like.log_bytes, wanted.log_bytes) +
                            Distance(like.log_cores, wanted.log_cores),
                        like.ratio);
    }
  }
  std::ranges::sort(near);
  near.resize(std::min(near.size(), kNearest));
  std::ranges::sort(near, {}, &std::pair<double, double>::second);
  return RooflineNs(problem, spec_) * near[near.size() / 2].second;
}

}  // namespace ag::sim
