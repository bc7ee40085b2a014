// Group times by measuring, there and then: what plans are made from where no search, cache or
// worker is at hand (a session that tunes itself, benches).
#pragma once

#include <map>
#include <string>

#include "device/profile/profile.h"
#include "plan/estimator.h"

namespace ag {

class MeasuredTimes : public GroupTimes {
 public:
  // `device` and `clock` are borrowed. One thread at a time, the device's.
  MeasuredTimes(Device& device, const ProfileOptions& options, Clock& clock)
      : device_(device), options_(options), clock_(clock) {}

  // Measures an unknown problem with every kernel. A group that cannot be measured gets the
  // roofline's estimate times kPenalty, so that others are preferred where there are others.
  GroupTime Time(const GroupProblem& problem) override;
  std::optional<GroupTime> Recall(const LocalKey& key) override;
  void Remember(const LocalKey& key, const GroupTime& time) override;

  // What was measured for the problem; null when it was not asked for or failed.
  const Measurement* Find(const GroupProblem& problem) const;

 private:
  static constexpr double kPenalty = 100;
  Device& device_;
  const ProfileOptions options_;
  Clock& clock_;
  std::map<std::string, StatusOr<Measurement>> known_;  // By EncodeGroupProblem.
  absl::flat_hash_map<LocalKey, GroupTime> remembered_;
};

}  // namespace ag
