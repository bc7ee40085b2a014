#include "device/sim/recorded_times.h"

#include <algorithm>
#include <cmath>

#include "plan/estimator.h"

namespace ag::sim {
namespace {

// Of so many nearest groups the median is taken; fewer of a kind say too little about it.
constexpr size_t kNearest = 5;
constexpr size_t kEnough = 3;

double Distance(double a, double b) { return std::abs(a - b); }

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
    const Measurement& m = group.measurement;
    Kernels kernels = m.alternatives;
    kernels.emplace(kernels.begin(), m.kernel, m.latency.median_ns);
    std::ranges::stable_sort(kernels, {}, &std::pair<std::string, double>::second);
    Like like = times.Describe(group.problem);
    like.ratio = kernels[0].second / RooflineNs(group.problem, spec);
    times.likes_.push_back(std::move(like));
    times.kernels_[EncodeGroupProblem(group.problem)] = std::move(kernels);
    const std::string& pattern = group.problem.pattern;
    fits = fits || pattern == kReorderPattern || spec.FindPattern(pattern) != nullptr;
  }
  if (!fits) {
    return Err(StatusCode::kInvalidArgument,
               "recording: none of its {} groups is of a pattern of {}", recording.groups.size(),
               spec.name);
  }
  return times;
}

const RecordedTimes::Kernels* RecordedTimes::Find(GroupProblem problem, int stream_cores) const {
  auto found = kernels_.find(EncodeGroupProblem(problem));
  if (found == kernels_.end() && problem.cores == 0 && stream_cores > 0) {
    problem.cores = stream_cores;
    found = kernels_.find(EncodeGroupProblem(problem));
  }
  return found == kernels_.end() ? nullptr : &found->second;
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
  // How many marks of kind a group shares, kind before size.
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
