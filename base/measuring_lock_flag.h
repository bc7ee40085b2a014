// The flag of a program that names the host's measuring lock: a file that all who measure on the
// host can open, also from containers. Not thread-safe: called by main.
#pragma once

#include <cstdlib>
#include <string>

#include "base/measuring_lock.h"

namespace ag {

// For CLI::Option::check: returns why the file cannot be opened; "": it can.
inline std::string WrongMeasuringLock(const std::string& path) {
  const Status opened = FileLock::Try(path, FileLock::Mode::kShared).status();
  return opened.ok() || opened.code() == StatusCode::kUnavailable ? "" : Message(opened);
}

// Names the lock for this process and its children.
inline void NameMeasuringLock(const std::string& path) {
  AG_CHECK(::setenv("AUTOGRAPH_MEASURING_LOCK", path.c_str(), 1) == 0);
}

}  // namespace ag
