// Facts that the system knows about files: which names lead to one file, and who holds a lock.
// Thread-safe.
#pragma once

#include <sys/types.h>

#include <string>

namespace ag {

// Returns true when both names lead, directly or through links, to one existing file.
bool IsSameFile(const std::string& a, const std::string& b);

// Returns a process that holds a FileLock (base/file.h) on the file, as the kernel lists it. 0:
// none, or the holder is not listed because it runs in another container.
pid_t LockHolder(const std::string& path);

}  // namespace ag
