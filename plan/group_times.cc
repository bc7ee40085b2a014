#include "plan/estimator.h"

namespace ag {

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
