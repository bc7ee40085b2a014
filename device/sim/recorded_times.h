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
  // kInvalidArgument: no group, groups of several environments, none of a pattern of `spec`, or one
  // that keeps more cores busy than the spec has.
  static StatusOr<RecordedTimes> Of(const Recording& recording, const DeviceSpec& spec);

  // The group's kernels with their median times, the fastest first; null when it was not recorded.
  // Groups that name no cores (0) are also looked for with `stream_cores`.
  using Kernels = std::vector<std::pair<std::string, double>>;
  const Kernels* Find(const GroupProblem& problem, int stream_cores = 0) const;

  // Measurement::busy_cores, which were recorded of the group's fastest kernel; 0 for others.
  int BusyCores(const GroupProblem& problem, const std::string& kernel, int stream_cores = 0) const;

  // What the recorded pairs say of the device (plan/sharing.h); 1 without pairs. Pairs count whose
  // kernels' times are recorded.
  double overlap() const { return overlap_; }

  // The roofline times the median of measured over roofline among the recorded groups most like
  // this one: of its pattern and precision, cold or warm as it is, where there are enough; near in
  // operations, bytes and cores. A median, so that single bad measurements do not count.
  double EstimateNs(const GroupProblem& problem) const;

  size_t size() const { return groups_.size(); }

 private:
  // A recorded group as far as another one is compared with it.
  struct Like {
    std::string pattern, precision;
    bool cold_cache = false;
    double log_flops = 0, log_bytes = 0, log_cores = 0;
    double ratio = 1;  // Measured over roofline.
  };

  struct Recorded {
    Kernels kernels;
    std::string measured;  // The kernel of which the busy cores are.
    int busy_cores = 0;
  };

  explicit RecordedTimes(DeviceSpec spec) : spec_(std::move(spec)) {}
  Status Add(const RecordedGroup& group);
  double FitPairs(const std::vector<RecordedPair>& pairs) const;
  const Recorded* FindRecorded(GroupProblem problem, int stream_cores) const;
  Like Describe(const GroupProblem& problem) const;

  DeviceSpec spec_;
  std::map<std::string, Recorded> groups_;  // By EncodeGroupProblem.
  std::vector<Like> likes_;
  double overlap_ = 1;
};

}  // namespace ag::sim
