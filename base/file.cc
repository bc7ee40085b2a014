#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/file_ops.h"
#include "base/partial_files.h"
#include "base/write_pieces.h"

namespace ag {
namespace {

StatusCode CodeOf(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return StatusCode::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
    case EEXIST:
    case EISDIR:
    case ENOTEMPTY:
    case EBUSY:
    case ETXTBSY:
    case ENODEV:
      return StatusCode::kFailedPrecondition;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
    case EAGAIN:
      return StatusCode::kResourceExhausted;
    case ENAMETOOLONG:
    case ELOOP:
      return StatusCode::kInvalidArgument;
    case EPIPE:
    case ECONNRESET:
    case ECONNREFUSED:
    case ENOTCONN:
      return StatusCode::kUnavailable;
    case ETIMEDOUT:
      return StatusCode::kDeadlineExceeded;
    default:
      return StatusCode::kInternal;
  }
}

// Without ENOMEM and EFBIG, which the limits of a child give as well.
bool IsFaultOfHost(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EIO:
    case EMFILE:
    case ENFILE:
    case EAGAIN:
      return true;
    default:
      return false;
  }
}

Status ReadError(const std::string& path, int error) { return FromErrno(error, "read " + path); }

// Returns kFailedPrecondition, not kNotFound, for a missing folder: the caller must make it first.
Status WriteError(const std::string& path, int error) {
  Status status = FromErrno(error, "write " + path);
  if (status.code() != StatusCode::kNotFound) return status;
  return Status(StatusCode::kFailedPrecondition, Message(status));
}

std::string FolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// Creates a new file beside `path`; skips names that a dead process left.
int CreateBeside(const std::string& path, std::string& name, Fd& fd) {
  static std::atomic<uint64_t> next{0};
  for (int attempt = 0; attempt < 1000; ++attempt) {
    name = fmt::format("{}.tmp.{}.{}", path, ::getpid(), next++);
    const int error = file_ops::CreateNew(name, 0666, fd);
    if (error != EEXIST) return error;
  }
  return EEXIST;
}

// Makes the file `name` durable and renames it to `path`.
int SyncAndRename(const Fd& fd, const std::string& name, const std::string& path) {
  if (const int error = file_ops::Sync(fd.get())) return error;
  return file_ops::Rename(name, path);
}

StatusOr<Fd> OpenForReading(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return ReadError(path, errno);
  return fd;
}

// Reads `fd` to its end. Does not trust the size: files in /proc have the size 0.
int ReadAll(int fd, size_t size_expected, std::string& bytes) {
  constexpr size_t kStep = 4096;
  size_t size = 0;
  bytes.resize(size_expected + 1);  // One more byte: the read that finds the end needs no growth.
  for (;;) {
    const ssize_t got = ::read(fd, bytes.data() + size, bytes.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    size += static_cast<size_t>(got);
    if (got == 0) break;
    if (size == bytes.size()) bytes.resize(2 * size + kStep);
  }
  bytes.resize(size);
  return 0;
}

bool IsDirectory(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// A device, a pipe or a socket is not replaced by a file, also where a symbolic link leads to it.
Status CheckReplaceable(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) return OkStatus();
  if (S_ISDIR(info.st_mode)) return WriteError(path, EISDIR);
  return Err(StatusCode::kFailedPrecondition, "write {}: not a regular file", path);
}

}  // namespace

Status FromErrno(int error, std::string_view subject) {
  const char* const description = ::strerrordesc_np(error);  // Thread-safe, never translated.
  Status status = description == nullptr ? Err(CodeOf(error), "{}: error {}", subject, error)
                                         : Err(CodeOf(error), "{}: {}", subject, description);
  return IsFaultOfHost(error) ? AsHostFault(std::move(status)) : status;
}

StatusOr<std::string> ReadFile(const std::string& path) {
  AG_LET(const Fd fd, OpenForReading(path));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return ReadError(path, errno);
  std::string bytes;
  const int error = ReadAll(fd.get(), static_cast<size_t>(std::max<off_t>(info.st_size, 0)), bytes);
  if (error != 0) return ReadError(path, error);
  return bytes;
}

Status WriteFileAtomically(const std::string& path, std::string_view bytes) {
  return WriteFileInPieces(path, [&](const WritePiece& write) { return write(bytes); });
}

Status WriteFileInPieces(const std::string& path,
                         const std::function<Status(const WritePiece& write)>& give) {
  AG_TRY(CheckReplaceable(path));
  std::string name;
  Fd fd;
  if (const int error = CreateBeside(path, name, fd)) return WriteError(path, error);
  const PartialFile partial(name);
  Status written = give([&](std::string_view piece) {
    const int error = file_ops::AppendAll(fd.get(), piece);
    return error == 0 ? OkStatus() : WriteError(path, error);
  });
  if (written.ok()) {
    const int error = SyncAndRename(fd, name, path);
    if (error != 0) written = WriteError(path, error);
  }
  if (!written.ok()) {
    file_ops::Remove(name);  // The first error is reported.
    return written;
  }
  if (const int error = file_ops::SyncDir(FolderOf(path))) return WriteError(path, error);
  return OkStatus();
}

Status CheckWritable(const std::string& path) {
  AG_TRY(CheckReplaceable(path));
  std::string name;
  Fd fd;
  if (const int error = CreateBeside(path, name, fd)) return WriteError(path, error);
  if (const int error = file_ops::Remove(name)) return WriteError(path, error);
  return OkStatus();
}

Status MakeDirs(const std::string& path) {
  std::string made;
  for (const std::filesystem::path& part : std::filesystem::path(path)) {
    made = (std::filesystem::path(made) / part).string();
    if (part.empty() || IsDirectory(made)) continue;
    const int error = file_ops::MakeDir(made);
    if (error == EEXIST && IsDirectory(made)) continue;  // Another process made it.
    if (error != 0) return FromErrno(error, "make folder " + made);
    if (const int failed = file_ops::SyncDir(FolderOf(made))) {
      return FromErrno(failed, "make folder " + made);
    }
  }
  return OkStatus();
}

StatusOr<std::vector<std::string>> ListDir(const std::string& path) {
  std::error_code error;
  std::vector<std::string> names;
  std::filesystem::directory_iterator entry(path, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) return FromErrno(error.value(), "list " + path);
  std::sort(names.begin(), names.end());
  return names;
}

bool FileExists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0;
}

namespace {

struct Mapping {
  void* data = nullptr;
  size_t size = 0;
};

StatusOr<Mapping> Map(int fd, const std::string& subject) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return FromErrno(errno, subject);
  if (!S_ISREG(info.st_mode)) {
    return Err(StatusCode::kFailedPrecondition, "{}: not a regular file", subject);
  }
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return Mapping{};  // mmap refuses an empty range.
  void* const data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) return FromErrno(errno, subject);
  return Mapping{data, size};
}

}  // namespace

StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  AG_LET(const Fd fd, OpenForReading(path));
  AG_LET(const Mapping mapping, Map(fd.get(), "read " + path));
  return std::shared_ptr<const MappedFile>(new MappedFile(mapping.data, mapping.size));
}

StatusOr<std::shared_ptr<const MappedFile>> MappedFile::FromFd(int fd) {
  AG_LET(const Mapping mapping, Map(fd, fmt::format("map file descriptor {}", fd)));
  return std::shared_ptr<const MappedFile>(new MappedFile(mapping.data, mapping.size));
}

MappedFile::~MappedFile() {
  if (size_ > 0) ::munmap(data_, size_);
}

StatusOr<TempDir> TempDir::Make(std::string_view prefix) {
  const char* const folder = std::getenv("TMPDIR");
  return MakeIn(folder != nullptr && *folder != '\0' ? folder : "/tmp", prefix);
}

StatusOr<TempDir> TempDir::MakeIn(const std::string& parent, std::string_view prefix) {
  std::string path = fmt::format("{}/{}XXXXXX", parent, prefix);
  if (::mkdtemp(path.data()) == nullptr) return WriteError(path, errno);
  return TempDir(std::move(path));
}

TempDir::TempDir(TempDir&& other) noexcept : path_(std::exchange(other.path_, "")) {}

TempDir& TempDir::operator=(TempDir&& other) noexcept {
  std::swap(path_, other.path_);  // `other` now removes the folder of this one.
  return *this;
}

TempDir::~TempDir() {
  std::error_code ignored;  // A destructor cannot report an error.
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

namespace {

// Opens the lock file; creates it only when it is missing. In a sticky folder a file of another
// user can be locked, but it can be opened neither for writing nor with O_CREAT.
StatusOr<Fd> OpenLockFile(const std::string& path, int access) {
  Fd fd(::open(path.c_str(), access | O_CLOEXEC));
  if (!fd && errno == ENOENT) fd.reset(::open(path.c_str(), access | O_CREAT | O_CLOEXEC, 0666));
  if (!fd) return WriteError(path, errno);
  return fd;
}

int Flock(int fd, int operation) {
  while (::flock(fd, operation) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

}  // namespace

StatusOr<FileLock> FileLock::TryExclusive(const std::string& path, std::string_view who) {
  AG_LET(Fd fd, OpenLockFile(path, O_RDWR));
  const int error = Flock(fd.get(), LOCK_EX | LOCK_NB);
  if (error == EWOULDBLOCK) {
    std::string holder;  // Empty between the other process's lock and its write.
    if (ReadAll(fd.get(), 0, holder) != 0 || holder.empty()) holder = "another process";
    return Err(StatusCode::kUnavailable, "lock {}: held by {}", path, holder);
  }
  if (error != 0) return FromErrno(error, "lock " + path);
  if (::ftruncate(fd.get(), 0) != 0) return WriteError(path, errno);
  if (const int failed = file_ops::WriteAll(fd.get(), who)) return WriteError(path, failed);
  return FileLock(std::move(fd));
}

StatusOr<FileLock> FileLock::Wait(const std::string& path, Mode mode) {
  AG_LET(Fd fd, OpenLockFile(path, O_RDONLY));
  const int error = Flock(fd.get(), mode == Mode::kShared ? LOCK_SH : LOCK_EX);
  if (error != 0) return FromErrno(error, "lock " + path);
  return FileLock(std::move(fd));
}

StatusOr<FileLock> FileLock::Try(const std::string& path, Mode mode) {
  AG_LET(Fd fd, OpenLockFile(path, O_RDONLY));
  const int error = Flock(fd.get(), LOCK_NB | (mode == Mode::kShared ? LOCK_SH : LOCK_EX));
  if (error == EWOULDBLOCK) return Err(StatusCode::kUnavailable, "lock {}: held", path);
  if (error != 0) return FromErrno(error, "lock " + path);
  return FileLock(std::move(fd));
}

}  // namespace ag
