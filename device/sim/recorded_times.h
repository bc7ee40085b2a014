// The times that a simulated device takes from a recording (plan/format/recording.h): those of its
// groups, and for other groups the spec's roofline corrected by them. Immutable, so thread-safe.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/format/recording.h"

namespace ag::sim {

// The recorded groups of one device and environment.
class RecordedTimes {
 public:
  // Returns the times of a recording. kInvalidArgument: no group, groups of several environments,
  // none of a pattern of `spec`, or one that keeps more cores busy than the spec has.
  static StatusOr<RecordedTimes> Of(const Recording& recording, const DeviceSpec& spec);

  // Returns the group's kernels with their median times, the fastest first; null when it was not
  // recorded. Also looks for groups that name no cores (0) with `stream_cores`.
  using Kernels = std::vector<std::pair<std::string, double>>;
  const Kernels* Find(const GroupProblem& problem, int stream_cores = 0) const;

  // Returns Measurement::active_cores, which is recorded for the group's fastest kernel; 0 for
  // others. Of a group that was not recorded: those of its estimate.
  int ActiveCores(const GroupProblem& problem, const std::string& kernel,
                  int stream_cores = 0) const;

  // Returns the device's overlap (plan/schedule/contention_model.h) from the recorded pairs whose
  // kernels' times are recorded; 1 without pairs.
  double overlap() const { return overlap_; }

  // Returns the roofline times the median of measured over roofline among the most similar recorded
  // groups: of the same pattern, precision and cache state where there are enough of them, and near
  // in operations, bytes and cores. The median ignores single bad measurements.
  double EstimateNs(const GroupProblem& problem) const;

  size_t size() const { return groups_.size(); }

 private:
  // The properties of a recorded group that decide its similarity.
  struct Like {
    std::string pattern, precision;
    bool cold_cache = false;
    double log_flops = 0, log_bytes = 0, log_cores = 0;
    double ratio = 1;  // Measured over roofline.
  };

  struct Recorded {
    Kernels kernels;
    std::string measured;  // The kernel that active_cores is for.
    int active_cores = 0;
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
