#include <algorithm>

#include "plan/estimator.h"

namespace ag {
namespace {

// The share by which medians of one group differ from minute to minute on a quiet machine (2 cores,
// AMD EPYC).
constexpr double kNoise = 0.05;

}  // namespace

GroupTime GroupTimeOf(const Measurement& measurement) {
  const Latency& latency = measurement.latency;
  GroupTime time{.ns = latency.median_ns,
                 .measured = true,
                 .kernel = measurement.kernel,
                 .busy_cores = measurement.busy_cores};
  if (!measurement.simulated) {
    time.noise_ns = std::max(kNoise * latency.median_ns, (latency.high_ns - latency.low_ns) / 2);
  }
  return time;
}

std::optional<GroupTime> MemoizedGroupTimes::Recall(const LocalKey& key) {
  const MutexLock lock(mutex_);
  const auto it = known_.find(key);
  if (it == known_.end()) return std::nullopt;
  return it->second;
}

void MemoizedGroupTimes::Remember(const LocalKey& key, const GroupTime& time) {
  const MutexLock lock(mutex_);
  known_.insert_or_assign(key, time);
}

void MemoizedGroupTimes::Forget() {
  const MutexLock lock(mutex_);
  known_.clear();
}

}  // namespace ag
