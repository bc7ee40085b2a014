// Whole files: read, map, write, lock. A crash during a write leaves the old or the new bytes,
// never a mixture. Errors name the path. kNotFound: no such file; kFailedPrecondition: no
// permission, read-only, or a missing folder on write; kResourceExhausted: disk full or a limit;
// kInternal: other errors. Functions are thread-safe; an object belongs to one thread at a time,
// except MappedFile.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/handle.h"
#include "base/status.h"

namespace ag {

// Returns the file's bytes.
StatusOr<std::string> ReadFile(const std::string& path);

// Replaces the file: writes to a temporary name in the same folder, fsyncs, renames, fsyncs the
// folder. After an error the old bytes are there, unless only the last step failed. A symbolic link
// is replaced, not followed. kFailedPrecondition: a device, a pipe or a socket is there.
Status WriteFileAtomically(const std::string& path, std::string_view bytes);

// Returns the error that WriteFileAtomically would return at its first step. Leaves nothing behind.
// For a check before long work whose result goes to `path`.
Status CheckWritable(const std::string& path);

Status MakeDirs(const std::string& path);  // Makes the folder and its parents, as mkdir -p.
// Returns the sorted names in the folder, without "." and "..".
StatusOr<std::vector<std::string>> ListDir(const std::string& path);
bool FileExists(const std::string& path);

// Returns the status for errno value `error`; the message begins with `subject`.
Status FromErrno(int error, std::string_view subject);

// A read-only mapping of a file. Safe to share between threads. An empty file gives an empty view.
class MappedFile {
 public:
  static StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& path);
  static StatusOr<std::shared_ptr<const MappedFile>> FromFd(int fd);  // The fd may be closed after.
  ~MappedFile();
  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }

 private:
  MappedFile(void* data, size_t size) : data_(data), size_(size) {}
  void* data_;
  size_t size_;
};

// A new temporary folder, in $TMPDIR or else /tmp. The destructor removes it with its contents.
class TempDir {
 public:
  static StatusOr<TempDir> Make(std::string_view prefix);
  static StatusOr<TempDir> MakeIn(const std::string& parent, std::string_view prefix);
  TempDir(TempDir&&) noexcept;
  TempDir& operator=(TempDir&&) noexcept;
  ~TempDir();
  const std::string& path() const { return path_; }

 private:
  explicit TempDir(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// An advisory lock on a file (flock), held until destruction or until the process dies. Any number
// of shared holders, or one exclusive holder.
class FileLock {
 public:
  // Takes the lock exclusively and writes `who` into the file. kUnavailable: another process holds
  // it; the message has the `who` that it wrote.
  static StatusOr<FileLock> TryExclusive(const std::string& path, std::string_view who);
  // Wait waits for the lock; Try does not wait.
  enum class Mode { kShared, kExclusive };
  static StatusOr<FileLock> Wait(const std::string& path, Mode mode);
  static StatusOr<FileLock> Try(const std::string& path, Mode mode);  // kUnavailable: it is held.

 private:
  explicit FileLock(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace ag
