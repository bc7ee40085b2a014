#include "base/measuring_lock.h"

#include <cstdlib>
#include <future>
#include <memory>

#include "base/file_facts.h"
#include "base/thread.h"

namespace ag {
namespace {

constexpr Nanos kLook{50'000'000};
constexpr Nanos kSayEvery{1'000'000'000};

}  // namespace

std::string MeasuringLockPath() {
  if (const char* path = std::getenv("AUTOGRAPH_MEASURING_LOCK"); path != nullptr && *path != 0) {
    return path;
  }
  const char* folder = std::getenv("TMPDIR");
  return std::string(folder != nullptr && *folder != 0 ? folder : "/tmp") +
         "/autograph-measuring.lock";
}

StatusOr<FileLock> WaitForLock(const std::string& path, FileLock::Mode mode, const LockWait& wait) {
  StatusOr<FileLock> free = FileLock::Try(path, mode);
  if (free.status().code() != StatusCode::kUnavailable) return free;
  // After a give-up this thread continues; it releases the lock as soon as it gets it.
  auto promise = std::make_shared<std::promise<StatusOr<FileLock>>>();
  std::future<StatusOr<FileLock>> taken = promise->get_future();
  AG_LET(std::thread waiter,
         StartThread([promise, path, mode] { promise->set_value(FileLock::Wait(path, mode)); }));
  waiter.detach();
  Nanos waited{0};
  bool given_up = false;
  while (!given_up && taken.wait_for(kLook) != std::future_status::ready) {
    waited += kLook;
    if (wait.on_wait && waited % kSayEvery == Nanos{0}) {
      const pid_t holder = LockHolder(path);
      wait.on_wait(holder > 0 ? holder : kUnknownHolder);
    }
    given_up = wait.give_up && wait.give_up();
  }
  if (wait.on_wait && waited >= kSayEvery) wait.on_wait(0);
  if (given_up) return Err(StatusCode::kCancelled, "gave up waiting for lock {}", path);
  return taken.get();
}

std::string MeasuringLockText(pid_t holder) {
  if (holder == 0) return "";
  return holder > 0 ? fmt::format("the measuring lock, held by process {}", holder)
                    : "the measuring lock, held by another process";
}

Status SearchTurn::Enter() {
  AG_LET(FileLock lock, WaitForLock(path_, FileLock::Mode::kShared, wait_));
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
  // flock is not fair: without a pause the next Enter would overtake the waiting measurement.
  clock.SleepFor(Nanos{1'000'000});
  AG_TRY(Enter());
  entered_ = clock.Now();
  return OkStatus();
}

}  // namespace ag
