// The system calls that change files, one thin function each, so that a test can make the n-th of
// them fail (FileFault). What writes files in this house goes through here; file.h is for callers.
// Each returns 0 or an errno value and retries EINTR. Thread-safe.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/handle.h"

namespace ag::file_ops {

// Creates a file for writing; EEXIST when there is one. Close-on-exec, as every descriptor here.
int CreateNew(const std::string& path, mode_t mode, Fd& fd);
int WriteAll(int fd, std::string_view bytes);  // On failure a first part may be written.
int Sync(int fd);
int SyncDir(const std::string& path);         // Makes created, renamed and removed names durable.
int SyncFileSystem(const std::string& path);  // All files of the file system that has `path`.
int Rename(const std::string& from, const std::string& to);
int Remove(const std::string& path);
int MakeDir(const std::string& path);  // EEXIST when there is anything of that name.

// For tests: while it lives, the n-th (from 1) call above in this process fails with `error` and
// without effect, but a WriteAll leaves half of its bytes. One at a time.
class FileFault {
 public:
  struct Options {
    int n = 1;
    int error = 0;           // An errno value.
    bool all_later = false;  // The later calls fail too, as after a crash or on a full disk.
  };
  explicit FileFault(const Options& options);
  ~FileFault();
  FileFault(const FileFault&) = delete;
  FileFault& operator=(const FileFault&) = delete;
  bool Fired() const;  // Whether there was an n-th call yet.
};

}  // namespace ag::file_ops
