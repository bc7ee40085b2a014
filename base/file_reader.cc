#include "base/file_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"

namespace ag {

StatusOr<FileReader> FileReader::Open(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0) return FromErrno(errno, "read " + path);
  if (!S_ISREG(info.st_mode)) {
    return Err(StatusCode::kFailedPrecondition, "read {}: not a regular file", path);
  }
  return FileReader(path, std::move(fd), info.st_size);
}

StatusOr<std::string_view> FileReader::Read(uint64_t offset, size_t size) {
  if (piece_.size() < size) piece_.resize(size);
  for (size_t done = 0; done < size;) {
    const auto at = static_cast<off_t>(offset + done);
    const ssize_t got = ::pread(fd_.get(), piece_.data() + done, size - done, at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FromErrno(errno, "read " + path_);
    if (got == 0) {
      return Err(StatusCode::kFailedPrecondition, "read {}: it ends before byte {}", path_,
                 offset + size);
    }
    done += static_cast<size_t>(got);
  }
  return std::string_view(piece_).substr(0, size);
}

StatusOr<Digest> Sha256OfFile(const std::string& path) {
  constexpr int64_t kPieceBytes = 256 << 10;  // Fits into the core's own cache.
  AG_LET(FileReader file, FileReader::Open(path));
  Hasher hasher;
  for (int64_t begin = 0; begin < file.size(); begin += kPieceBytes) {
    const auto size = static_cast<size_t>(std::min(kPieceBytes, file.size() - begin));
    AG_LET(const std::string_view piece, file.Read(static_cast<uint64_t>(begin), size));
    hasher.Update(piece);
  }
  return hasher.Finish();
}

}  // namespace ag
