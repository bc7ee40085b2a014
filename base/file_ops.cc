#include "base/file_ops.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/status.h"

namespace ag::file_ops {
namespace {

// What the FileFault that lives says; error 0: none lives. Atomic, since threads may write when it
// ends.
struct FaultState {
  std::atomic<int> n, error, calls;
  std::atomic<bool> all_later;
};
FaultState fault;
std::atomic<int> no_syncs{0};  // How many NoSyncs live.

// Repeats `call` while a signal interrupts it; returns 0 or the errno value.
template <class Call>
int Run(Call call) {
  if (const int error = InjectedFault(); error != 0) return error;
  while (call() < 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

int WriteLoop(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return errno;
    if (written > 0) bytes.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

constexpr size_t kHoleBytes = size_t{64} << 10;

// Returns how many of the first bytes are zeros, in whole blocks.
size_t ZeroBlocks(std::string_view bytes) {
  size_t zeros = 0;
  while (bytes.size() - zeros >= kHoleBytes) {
    const char* const block = bytes.data() + zeros;
    if (*block != 0 || std::memcmp(block, block + 1, kHoleBytes - 1) != 0) break;
    zeros += kHoleBytes;
  }
  return zeros;
}

int AppendHole(int fd, size_t bytes) {
  const off_t end = ::lseek(fd, static_cast<off_t>(bytes), SEEK_CUR);
  return end >= 0 && ::ftruncate(fd, end) == 0 ? 0 : errno;
}

}  // namespace

int InjectedFault() {
  const int error = fault.error;
  if (error == 0) return 0;
  const int call = ++fault.calls;
  const bool fails = call == fault.n || (fault.all_later && call > fault.n);
  return fails ? error : 0;
}

int CreateNew(const std::string& path, mode_t mode, Fd& fd) {
  return Run([&] {
    fd.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    return fd.get();
  });
}

int WriteAll(int fd, std::string_view bytes) {
  if (const int error = InjectedFault(); error != 0) {
    WriteLoop(fd, bytes.substr(0, bytes.size() / 2));
    return error;
  }
  return WriteLoop(fd, bytes);
}

int AppendAll(int fd, std::string_view bytes) {
  if (const int error = InjectedFault(); error != 0) {
    WriteLoop(fd, bytes.substr(0, bytes.size() / 2));
    return error;
  }
  while (!bytes.empty()) {
    size_t size = ZeroBlocks(bytes);
    int error = size > 0 ? AppendHole(fd, size) : 0;
    if (size == 0) {
      do {
        size += std::min(kHoleBytes, bytes.size() - size);
      } while (size < bytes.size() && ZeroBlocks(bytes.substr(size, kHoleBytes)) == 0);
      error = WriteLoop(fd, bytes.substr(0, size));
    }
    if (error != 0) return error;
    bytes.remove_prefix(size);
  }
  return 0;
}

int Sync(int fd) {
  return Run([&] { return no_syncs > 0 ? 0 : ::fsync(fd); });
}

int SyncDir(const std::string& path) {
  return Run([&] {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd) return -1;
    // EINVAL: this file system has no durable names, so there is nothing to sync.
    return no_syncs > 0 || ::fsync(fd.get()) == 0 || errno == EINVAL ? 0 : -1;
  });
}

int SyncFileSystem(const std::string& path) {
  return Run([&] {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return -1;
    return no_syncs > 0 ? 0 : ::syncfs(fd.get());
  });
}

int Rename(const std::string& from, const std::string& to) {
  return Run([&] { return ::rename(from.c_str(), to.c_str()); });
}

int Link(const std::string& from, const std::string& to) {
  return Run([&] { return ::link(from.c_str(), to.c_str()); });
}

int Remove(const std::string& path) {
  return Run([&] { return ::unlink(path.c_str()); });
}

int MakeDir(const std::string& path) {
  return Run([&] { return ::mkdir(path.c_str(), 0777); });
}

FileFault::FileFault(const Options& options) {
  AG_CHECK(options.n > 0 && options.error != 0 && fault.error == 0);
  fault.n = options.n;
  fault.all_later = options.all_later;
  fault.calls = 0;
  fault.error = options.error;
}

FileFault::~FileFault() { fault.error = 0; }

bool FileFault::Fired() const { return fault.calls >= fault.n; }

NoSyncs::NoSyncs() { ++no_syncs; }
NoSyncs::~NoSyncs() { --no_syncs; }

}  // namespace ag::file_ops
