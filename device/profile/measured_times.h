// Group times by measuring at once, for plans that are made without search, cache and worker (a
// session that tunes itself, benches). One thread at a time, the device's.
#pragma once

#include <map>
#include <string>

#include "device/profile/profile.h"
#include "plan/estimator.h"

namespace ag {

class MeasuredTimes : public GroupTimes {
 public:
  // REQUIRES: `device` and `clock` outlive this.
  MeasuredTimes(Device& device, const ProfileOptions& options, Clock& clock)
      : device_(device), options_(options), clock_(clock) {}

  // Returns the time of a problem; measures an unknown one with every kernel. A group that cannot
  // be measured gets the roofline's estimate times kPenalty, so that other groups are preferred.
  GroupTime Time(const GroupProblem& problem) override;
  std::optional<GroupTime> Recall(const LocalKey& key) override;
  void Remember(const LocalKey& key, const GroupTime& time) override;

  // Returns the problem's measurement; null when it was not asked for or failed.
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
