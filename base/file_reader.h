// A regular file that is read piece by piece, so it is never in memory as a whole. A file that
// becomes shorter while it is read gives an error; a mapping would end the process with a signal.
// One thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/digest.h"
#include "base/handle.h"
#include "base/status.h"

namespace ag {

class FileReader {
 public:
  // Opens the file. Errors as MappedFile::Open (base/file.h).
  static StatusOr<FileReader> Open(const std::string& path);

  int64_t size() const { return size_; }  // At the time of Open.
  int fd() const { return fd_.get(); }    // The reader keeps the descriptor.

  // Returns `size` bytes from `offset` on, valid until the next call. kFailedPrecondition: the file
  // is shorter.
  StatusOr<std::string_view> Read(uint64_t offset, size_t size);

 private:
  FileReader(std::string path, Fd fd, int64_t size)
      : path_(std::move(path)), fd_(std::move(fd)), size_(size) {}
  std::string path_;
  Fd fd_;
  int64_t size_;
  std::string piece_;
};

// Returns the SHA-256 of the whole file. Reads it piece by piece: for a file in the page cache, the
// mapping of its pages would be half of the work.
StatusOr<Digest> Sha256OfFile(const std::string& path);

}  // namespace ag
