// The host-wide measuring lock (DESIGN section 8): on a host whose cores both search and measure,
// the two never overlap. A measurement holds the lock exclusively, a search shares it and lets go
// often.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/file.h"

namespace ag {

// One path for all processes of the host: $AUTOGRAPH_MEASURING_LOCK, else a file in the system's
// temporary folder.
std::string MeasuringLockPath();

// The searching side. Not thread-safe: each job has its own.
class SearchTurn {
 public:
  explicit SearchTurn(std::string path = MeasuringLockPath()) : path_(std::move(path)) {}
  Status Enter();             // Waits until nothing measures.
  StatusOr<bool> TryEnter();  // False: something measures.
  void Leave();               // Before waiting for measurements, and at the end.
  // Lets a waiting measurement in when this turn has lasted for `slice`; cheap otherwise.
  Status Yield(Clock& clock, Nanos slice = Nanos{50'000'000});

 private:
  std::string path_;
  std::optional<FileLock> lock_;
  Nanos entered_{0};
};

}  // namespace ag
