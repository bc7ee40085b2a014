// What the system knows of files: which names are one file, who holds a lock. Thread-safe.
#pragma once

#include <sys/types.h>

#include <string>

namespace ag {

// True when both names lead to one existing file, be it through links.
bool IsSameFile(const std::string& a, const std::string& b);

// A process that holds a FileLock (base/file.h) on the file, as the kernel lists it; 0: none, or it
// is not listed (it belongs to another container).
pid_t LockHolder(const std::string& path);

}  // namespace ag
