#include "device/profile/measured_times.h"

namespace ag {

GroupTime MeasuredTimes::Time(const GroupProblem& problem) {
  if (problem.pattern == kViewPattern) return {.ns = 0, .measured = true};
  std::string bytes = EncodeGroupProblem(problem);
  auto it = known_.find(bytes);
  if (it == known_.end()) {
    it = known_.emplace(std::move(bytes), ProfileGroup(device_, problem, options_, clock_)).first;
  }
  const StatusOr<Measurement>& known = it->second;
  if (!known.ok()) return {.ns = kPenalty * RooflineNs(problem, device_.spec())};
  return GroupTimeOf(*known);
}

std::optional<GroupTime> MeasuredTimes::Recall(const LocalKey& key) {
  const auto it = remembered_.find(key);
  if (it == remembered_.end()) return std::nullopt;
  return it->second;
}

void MeasuredTimes::Remember(const LocalKey& key, const GroupTime& time) {
  remembered_.insert_or_assign(key, time);
}

const Measurement* MeasuredTimes::Find(const GroupProblem& problem) const {
  const auto it = known_.find(EncodeGroupProblem(problem));
  return it == known_.end() || !it->second.ok() ? nullptr : &*it->second;
}

}  // namespace ag
