// What a simulated device knows from a recording (plan/recording.h): the times of the groups in it,
// and the spec's roofline corrected by them for the others.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/recording.h"

namespace ag::sim {

// Immutable once made, so thread-safe.
class RecordedTimes {
 public:
  // kInvalidArgument: no group, groups of several environments, or none of a pattern of `spec`.
  static StatusOr<RecordedTimes> Of(const Recording& recording, const DeviceSpec& spec);

  // The group's kernels with their median times, the fastest first; null when it was not recorded.
  // Groups that name no cores (0) are also looked for with `stream_cores`.
  using Kernels = std::vector<std::pair<std::string, double>>;
  const Kernels* Find(GroupProblem problem, int stream_cores = 0) const;

  // The roofline times the median of measured over roofline among the recorded groups most like
  // this one: of its pattern and precision, cold or warm as it is, where there are enough; near in
  // operations, bytes and cores. A median, so that single bad measurements do not count.
  double EstimateNs(const GroupProblem& problem) const;

  size_t size() const { return kernels_.size(); }

 private:
  // A recorded group as far as another one is compared with it.
  struct Like {
    std::string pattern, precision;
    bool cold_cache = false;
    double log_flops = 0, log_bytes = 0, log_cores = 0;
    double ratio = 1;  // Measured over roofline.
  };

  explicit RecordedTimes(DeviceSpec spec) : spec_(std::move(spec)) {}
  Like Describe(const GroupProblem& problem) const;

  DeviceSpec spec_;
  std::map<std::string, Kernels> kernels_;  // By EncodeGroupProblem.
  std::vector<Like> likes_;
};

}  // namespace ag::sim
