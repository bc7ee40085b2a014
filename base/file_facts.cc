#include "base/file_facts.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstdint>
#include <sstream>

#include "base/file.h"

namespace ag {

bool IsSameFile(const std::string& a, const std::string& b) {
  struct stat first {};
  struct stat second {};
  return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

// A line of /proc/locks is "12: FLOCK  ADVISORY  WRITE 123 fe:00:4711 0 EOF"; a process that waits
// has an arrow after the number.
pid_t LockHolder(const std::string& path) {
  struct stat info {};
  const StatusOr<std::string> locks = ReadFile("/proc/locks");
  if (!locks.ok() || ::stat(path.c_str(), &info) != 0) return 0;
  const std::string file =
      fmt::format("{:02x}:{:02x}:{}", gnu_dev_major(info.st_dev), gnu_dev_minor(info.st_dev),
                  static_cast<uint64_t>(info.st_ino));
  std::istringstream lines(*locks);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string number, kind, scope, mode, place;
    pid_t pid = 0;
    words >> number >> kind >> scope >> mode >> pid >> place;
    if (words && kind == "FLOCK" && place == file && pid > 0) return pid;
  }
  return 0;
}

}  // namespace ag
