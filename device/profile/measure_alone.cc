#include <chrono>
#include <memory>
#include <thread>

#include "base/clock.h"
#include "base/measuring_lock.h"
#include "base/mutex.h"
#include "device/profile/profile.h"

namespace ag {
namespace {

// The lock on its way from the thread that waits for it to the one that wants it.
struct Handover {
  Mutex mutex;
  CondVar changed;
  bool is_wanted AG_GUARDED_BY(mutex) = true;
  std::optional<StatusOr<FileLock>> lock AG_GUARDED_BY(mutex);
};

// A lock that comes when nobody wants it any more is let go at once.
void WaitFor(const std::shared_ptr<Handover>& handover) {
  StatusOr<FileLock> lock = FileLock::Wait(MeasuringLockPath(), FileLock::Mode::kExclusive);
  const MutexLock held(handover->mutex);
  if (!handover->is_wanted) return;
  handover->lock.emplace(std::move(lock));
  handover->changed.NotifyAll();
}

}  // namespace

StatusOr<FileLock> MeasureAlone(const std::function<void()>& on_wait, Nanos until) {
  // Waiting in the kernel's queue, not by asking again and again: a search that lets go for a
  // moment would have the lock back before the next question.
  const auto handover = std::make_shared<Handover>();
  std::thread([handover] { WaitFor(handover); }).detach();
  constexpr Nanos kTick = std::chrono::seconds(1);
  while (true) {
    {
      const MutexLock held(handover->mutex);
      const Nanos left = until - std::min(until, RealClock().Now());
      if (!handover->lock.has_value())
        handover->changed.WaitFor(handover->mutex, std::min(kTick, left));
      if (handover->lock.has_value()) return *std::move(handover->lock);
      if (RealClock().Now() >= until) {
        handover->is_wanted = false;
        return Err(StatusCode::kCancelled, "not measured: others measured on this host until now");
      }
    }
    if (on_wait) on_wait();
  }
}

StatusOr<std::optional<FileLock>> MeasureAlone(const Device& device,
                                               const std::function<void()>& on_wait, Nanos until) {
  if (device.simulated()) return std::optional<FileLock>();
  AG_LET(FileLock lock, MeasureAlone(on_wait, until));
  return std::optional<FileLock>(std::move(lock));
}

}  // namespace ag
