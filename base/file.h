// Whole files: read, map, write so that a crash leaves the old or the new bytes, never a mixture.
// Errors name the path. kNotFound: no such file; kFailedPrecondition: no permission or read-only
// (also a missing folder on write); kResourceExhausted: disk full or a limit; kInternal: the rest.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/handle.h"
#include "base/status.h"

namespace ag {

StatusOr<std::string> ReadFile(const std::string& path);

// Writes to a temporary name in the same folder, fsyncs, renames, fsyncs the folder.
// On an error the old bytes are there, unless only the last step failed. A symbolic link is
// replaced.
Status WriteFileAtomically(const std::string& path, std::string_view bytes);

// Fails as WriteFileAtomically would at its first step, leaves nothing behind: asked before long
// work whose result is to go there.
Status CheckWritable(const std::string& path);

Status MakeDirs(const std::string& path);  // mkdir -p.
StatusOr<std::vector<std::string>> ListDir(
    const std::string& path);  // Sorted names without "." and "..".
bool FileExists(const std::string& path);

// Returns an absl status for errno value `error` about `subject`.
Status FromErrno(int error, std::string_view subject);

// A read-only mapping; thread-safe to read. Empty files map to an empty view.
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

// A temporary folder that is removed with its contents.
class TempDir {
 public:
  static StatusOr<TempDir> Make(std::string_view prefix);
  TempDir(TempDir&&) noexcept;
  TempDir& operator=(TempDir&&) noexcept;
  ~TempDir();
  const std::string& path() const { return path_; }

 private:
  explicit TempDir(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// An exclusive advisory lock on a file (flock), held until destruction or process death.
// kUnavailable when another process holds it; the message carries `who` as that process wrote it.
class FileLock {
 public:
  static StatusOr<FileLock> TryExclusive(const std::string& path, std::string_view who);
  // Waits for the lock. `shared` holders exclude only exclusive ones.
  enum class Mode { kShared, kExclusive };
  static StatusOr<FileLock> Wait(const std::string& path, Mode mode);
  static StatusOr<FileLock> Try(const std::string& path, Mode mode);  // kUnavailable: held.

 private:
  explicit FileLock(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace ag
