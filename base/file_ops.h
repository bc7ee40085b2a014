// The system calls that change files, one thin function for each, so that a test can make the n-th
// call fail (FileFault). Code that writes files calls these; most callers use base/file.h. Each
// function returns 0 or an errno value and repeats after EINTR. Thread-safe.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/handle.h"

namespace ag::file_ops {

// Creates a file for writing, close-on-exec. EEXIST: there is one.
int CreateNew(const std::string& path, mode_t mode, Fd& fd);
int WriteAll(int fd, std::string_view bytes);  // After a failure some of the bytes may be written.
// The same at the end of a regular file; long runs of zeros become holes, which take no room on the
// disk and next to no time.
int AppendAll(int fd, std::string_view bytes);
int Sync(int fd);
int SyncDir(const std::string& path);         // Makes created, renamed and removed names durable.
int SyncFileSystem(const std::string& path);  // Syncs the whole file system that has `path`.
int Rename(const std::string& from, const std::string& to);
int Link(const std::string& from, const std::string& to);  // Hard link. EEXIST: `to` is taken.
int Remove(const std::string& path);
int MakeDir(const std::string& path);  // EEXIST: the name is taken.

// For tests. While it lives, the n-th (from 1) call of a function above fails with `error`. The
// failed call has no effect, except that a WriteAll writes half of its bytes. At most one lives at
// a time in a process.
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
  bool Fired() const;  // True once the n-th call has come.
};

// For tests that need no power cut. While one lives, the functions that sync do not wait for the
// disk.
class NoSyncs {
 public:
  NoSyncs();
  ~NoSyncs();
  NoSyncs(const NoSyncs&) = delete;
  NoSyncs& operator=(const NoSyncs&) = delete;
};

// Counts one more call, for what changes files in another way (a database), and returns its fault
// or 0. For tests.
int InjectedFault();

}  // namespace ag::file_ops
