#include "base/measuring_lock.h"
#include "device/profile/profile.h"

namespace ag {

StatusOr<FileLock> MeasureAlone(const LockWait& wait) {
  return WaitForLock(MeasuringLockPath(), FileLock::Mode::kExclusive, wait);
}

StatusOr<std::optional<FileLock>> MeasureAlone(const Device& device,
                                               const std::function<void(pid_t)>& on_wait,
                                               Nanos until) {
  if (device.simulated()) return std::optional<FileLock>();
  const auto is_over = [until] { return RealClock().Now() >= until; };
  StatusOr<FileLock> lock = MeasureAlone(LockWait{on_wait, is_over});
  if (lock.status().code() == StatusCode::kCancelled) {
    return Err(StatusCode::kCancelled, "not measured: others measured on this host until now");
  }
  AG_TRY(lock);
  return std::optional<FileLock>(*std::move(lock));
}

}  // namespace ag
