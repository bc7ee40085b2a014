// The host-wide measuring lock (DESIGN section 8): on a host whose cores both search and measure,
// the two never overlap. A measurement holds the lock exclusively, a search shares it and lets go
// often.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/file.h"

namespace ag {

// One path for all processes of the host: $AUTOGRAPH_MEASURING_LOCK, else a file in the system's
// temporary folder.
std::string MeasuringLockPath();

inline constexpr pid_t kUnknownHolder = -1;
struct LockWait {
  // May be null. Called about once a second while the wait takes that long, with a process that
  // holds the lock or kUnknownHolder; after that once with 0, when the wait is over.
  std::function<void(pid_t holder)> on_wait = nullptr;
  std::function<bool()> give_up = nullptr;  // May be null. Asked every 50 ms.
};
// Takes the lock. The wait is in the kernel's queue: a search that lets go for a moment would have
// the lock back before the next question. kCancelled: `give_up` became true.
StatusOr<FileLock> WaitForLock(const std::string& path, FileLock::Mode mode, const LockWait& wait);

// "the measuring lock, held by process 123"; of kUnknownHolder "... another process", of 0 "".
std::string MeasuringLockText(pid_t holder);

// The searching side. Not thread-safe: each job has its own.
class SearchTurn {
 public:
  explicit SearchTurn(std::string path = MeasuringLockPath(), LockWait wait = {})
      : path_(std::move(path)), wait_(std::move(wait)) {}
  Status Enter();             // Waits until nothing measures; kCancelled: see LockWait.
  StatusOr<bool> TryEnter();  // False: something measures.
  void Leave();               // Before waiting for measurements, and at the end.
  // Lets a waiting measurement in when this turn has lasted for `slice`; cheap otherwise.
  Status Yield(Clock& clock, Nanos slice = Nanos{50'000'000});

 private:
  std::string path_;
  LockWait wait_;
  std::optional<FileLock> lock_;
  Nanos entered_{0};
};

}  // namespace ag
