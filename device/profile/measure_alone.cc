#include <chrono>
#include <future>

#include "base/measuring_lock.h"
#include "device/profile/profile.h"

namespace ag {

StatusOr<FileLock> MeasureAlone(const std::function<void()>& on_wait) {
  // Waiting in the kernel's queue, not by asking again and again: a search that lets go for a
  // moment would have the lock back before the next question.
  auto waiting = std::async(std::launch::async, [] {
    return FileLock::Wait(MeasuringLockPath(), FileLock::Mode::kExclusive);
  });
  while (waiting.wait_for(std::chrono::seconds(1)) != std::future_status::ready) {
    if (on_wait) on_wait();
  }
  return waiting.get();
}

StatusOr<std::optional<FileLock>> MeasureAlone(const Device& device,
                                               const std::function<void()>& on_wait) {
  if (device.simulated()) return std::optional<FileLock>();
  AG_LET(FileLock lock, MeasureAlone(on_wait));
  return std::optional<FileLock>(std::move(lock));
}

}  // namespace ag
