// The host-wide measuring lock (docs/design.md, Measuring): on a host whose cores both search and
// measure, the two never overlap. A measurement holds the lock exclusively. A search shares it and
// releases it often. Functions are thread-safe; a SearchTurn belongs to one thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/file.h"

namespace ag {

// Returns the path of the lock, one for all processes of the host: $AUTOGRAPH_MEASURING_LOCK, else
// a file in the system's temporary folder.
std::string MeasuringLockPath();

inline constexpr pid_t kUnknownHolder = -1;
struct LockWait {
  // May be null. Called about once a second during the wait, with a process that holds the lock or
  // with kUnknownHolder. When it was called, it is called a last time with 0 after the wait.
  std::function<void(pid_t holder)> on_wait = nullptr;
  std::function<bool()> give_up = nullptr;  // May be null. Called every 50 ms.
};
// Waits for the lock and takes it. It waits in the kernel's queue: polling would fail, because a
// search that releases the lock for a moment takes it back before the next poll. kCancelled:
// `give_up` returned true.
StatusOr<FileLock> WaitForLock(const std::string& path, FileLock::Mode mode, const LockWait& wait);

// Returns "the measuring lock, held by process 123"; for kUnknownHolder "... another process", for
// 0 "".
std::string MeasuringLockText(pid_t holder);

// The search's side of the lock. Not thread-safe: each job has its own.
class SearchTurn {
 public:
  explicit SearchTurn(std::string path = MeasuringLockPath(), LockWait wait = {})
      : path_(std::move(path)), wait_(std::move(wait)) {}
  Status Enter();             // Waits until nothing measures; kCancelled: see LockWait.
  StatusOr<bool> TryEnter();  // False: something measures now.
  void Leave();               // Called before the search waits for measurements, and at its end.
  // Releases and takes the lock when this turn has lasted for `slice`, so that a waiting
  // measurement gets it. Cheap otherwise. Errors as Enter.
  Status Yield(Clock& clock, Nanos slice = Nanos{50'000'000});

 private:
  std::string path_;
  LockWait wait_;
  std::optional<FileLock> lock_;
  Nanos entered_{0};
};

}  // namespace ag
