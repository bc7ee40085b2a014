// What changes when a file gets other bytes or another mode: replaced (as Kubernetes and `mv` do
// it) or changed in place. Plain data.
#pragma once

#include <sys/stat.h>

#include <string>

namespace ag {

struct FileStamp {
  dev_t device = 0;
  ino_t inode = 0;
  off_t size = 0;
  time_t seconds = 0;
  long nanos = 0;

  bool operator==(const FileStamp&) const = default;
};

// Follows links; the zero stamp for a file that is not there.
inline FileStamp StampOf(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {};
  return {info.st_dev, info.st_ino, info.st_size, info.st_ctim.tv_sec, info.st_ctim.tv_nsec};
}

}  // namespace ag
