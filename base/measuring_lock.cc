#include "base/measuring_lock.h"

#include <cstdlib>

namespace ag {

std::string MeasuringLockPath() {
  if (const char* path = std::getenv("AUTOGRAPH_MEASURING_LOCK"); path != nullptr && *path != 0) {
    return path;
  }
  const char* folder = std::getenv("TMPDIR");
  return std::string(folder != nullptr && *folder != 0 ? folder : "/tmp") +
         "/autograph-measuring.lock";
}

Status SearchTurn::Enter() {
  AG_LET(FileLock lock, FileLock::Wait(path_, FileLock::Mode::kShared));
  lock_.emplace(std::move(lock));
  return OkStatus();
}

StatusOr<bool> SearchTurn::TryEnter() {
  StatusOr<FileLock> lock = FileLock::Try(path_, FileLock::Mode::kShared);
  if (lock.status().code() == StatusCode::kUnavailable) return false;
  AG_TRY(lock.status());
  lock_.emplace(*std::move(lock));
  return true;
}

void SearchTurn::Leave() {
  lock_.reset();
  entered_ = Nanos{0};
}

Status SearchTurn::Yield(Clock& clock, Nanos slice) {
  if (!lock_) return OkStatus();
  const Nanos now = clock.Now();
  if (entered_ == Nanos{0}) entered_ = now;
  if (now - entered_ < slice) return OkStatus();
  Leave();
  // flock is not fair: without a pause the next Enter would overtake the measurement that waits.
  clock.SleepFor(Nanos{1'000'000});
  AG_TRY(Enter());
  entered_ = clock.Now();
  return OkStatus();
}

}  // namespace ag
