// A regular file read piece by piece: it never stands in memory whole, and when somebody cuts it
// short while it is read, that is an error and not the signal that ends who reads a mapping.
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
  // Errors as MappedFile::Open (base/file.h).
  static StatusOr<FileReader> Open(const std::string& path);

  int64_t size() const { return size_; }  // When it was opened.
  int fd() const { return fd_.get(); }    // Borrowed.

  // `size` bytes from `offset` on; good until the next call. kFailedPrecondition: the file is
  // shorter.
  StatusOr<std::string_view> Read(uint64_t offset, size_t size);

 private:
  FileReader(std::string path, Fd fd, int64_t size)
      : path_(std::move(path)), fd_(std::move(fd)), size_(size) {}
  std::string path_;
  Fd fd_;
  int64_t size_;
  std::string piece_;
};

// SHA-256 of the whole file, read piece by piece: no page of it is mapped, which is half of the
// work when it lies in the page cache.
StatusOr<Digest> Sha256OfFile(const std::string& path);

}  // namespace ag
