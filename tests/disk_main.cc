// A module for LD_PRELOAD that is a disk which fails, for tests/faults: it acts on files below the
// folder AUTOGRAPH_DISK. The file AUTOGRAPH_DISK_FAULT has one word, read at every call: "full"
// (nothing more can be written), "sync" (syncs fail), anything else: the disk works. With
// AUTOGRAPH_DISK_KEPT, a folder, it also notes what a loss of power leaves: at the sync of a file
// its bytes, in "file-INODE", and at the sync of a folder its names, in "folder-INODE" (lines "NAME
// INODE", "NAME/ INODE" of a folder, behind its own path). Children of autographd load it too, but
// for sandboxes. Thread-safe.
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// A sandbox opens no file, and a program that only starts ours is none of ours.
bool IsOurs() {
  char text[4096] = "";
  const int fd = ::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t size = ::read(fd, text, sizeof(text) - 1);
  ::close(fd);
  const std::string words(text, size > 0 ? static_cast<size_t>(size) : 0);
  return words.find("--child=sandbox") == words.npos && words.find("setpriv") == words.npos;
}

const bool kIsOurs = IsOurs();
const std::string kRoot = Variable("AUTOGRAPH_DISK"), kFault = Variable("AUTOGRAPH_DISK_FAULT"),
                  kKept = Variable("AUTOGRAPH_DISK_KEPT");
std::mutex keeping;

template <class Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

// Returns the path of an open file below the root; "" of any other.
std::string PathOf(int fd) {
  if (!kIsOurs || kRoot.empty()) return "";
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t size = ::readlink(link.c_str(), path, sizeof(path));
  if (size <= 0) return "";
  const std::string found(path, static_cast<size_t>(size));
  return found.starts_with(kRoot) ? found : "";
}

bool Is(const char* word) {
  char text[16] = "";
  const int fd = ::open(kFault.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  (void)!::read(fd, text, sizeof(text) - 1);
  ::close(fd);
  return std::strncmp(text, word, std::strlen(word)) == 0;
}

// Writes a file of the notes whole.
void Note(const std::string& name, const std::string& bytes) {
  static auto* const kWrite = Real<ssize_t(int, const void*, size_t)>("write");
  const std::string path = kKept + "/" + name;
  const int fd = ::open((path + ".new").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return;
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t wrote = kWrite(fd, bytes.data() + done, bytes.size() - done);
    if (wrote <= 0) break;
    done += static_cast<size_t>(wrote);
  }
  ::close(fd);
  ::rename((path + ".new").c_str(), path.c_str());
}

std::string BytesOf(const std::string& path) {
  std::string bytes;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  char piece[65536];
  for (ssize_t size = 0; fd >= 0 && (size = ::read(fd, piece, sizeof(piece))) > 0;) {
    bytes.append(piece, static_cast<size_t>(size));
  }
  ::close(fd);
  return bytes;
}

std::string NamesIn(const std::string& path) {
  std::string names = path + "\n";
  DIR* const folder = ::opendir(path.c_str());
  if (folder == nullptr) return names;
  while (const dirent* entry = ::readdir(folder)) {
    if (entry->d_name[0] == '.') continue;
    names += std::string(entry->d_name) + (entry->d_type == DT_DIR ? "/ " : " ") +
             std::to_string(entry->d_ino) + "\n";
  }
  ::closedir(folder);
  return names;
}

void Keep(int fd, const std::string& path) {
  struct stat about {};
  if (kKept.empty() || ::fstat(fd, &about) != 0) return;
  const std::lock_guard<std::mutex> lock(keeping);
  const bool is_folder = S_ISDIR(about.st_mode);
  // An inode of a file that was removed before the loss may be taken again: its name is not noted.
  Note((is_folder ? "folder-" : "file-") + std::to_string(about.st_ino),
       is_folder ? NamesIn(path) : BytesOf("/proc/self/fd/" + std::to_string(fd)));
}

int Sync(const char* name, int fd) {
  const std::string path = PathOf(fd);
  if (!path.empty() && Is("sync")) {
    errno = EIO;
    return -1;
  }
  if (!path.empty()) Keep(fd, path);
  return Real<int(int)>(name)(fd);
}

bool IsFull(int fd) {
  if (!kIsOurs || kRoot.empty() || !Is("full") || PathOf(fd).empty()) return false;
  errno = ENOSPC;
  return true;
}

}  // namespace

extern "C" int fsync(int fd) { return Sync("fsync", fd); }
extern "C" int fdatasync(int fd) { return Sync("fdatasync", fd); }

extern "C" ssize_t write(int fd, const void* data, size_t size) {
  static auto* const kReal = Real<ssize_t(int, const void*, size_t)>("write");
  return IsFull(fd) ? -1 : kReal(fd, data, size);
}

extern "C" ssize_t pwrite(int fd, const void* data, size_t size, off_t at) {
  static auto* const kReal = Real<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  return IsFull(fd) ? -1 : kReal(fd, data, size, at);
}

extern "C" ssize_t pwrite64(int fd, const void* data, size_t size, off64_t at) {
  static auto* const kReal = Real<ssize_t(int, const void*, size_t, off64_t)>("pwrite64");
  return IsFull(fd) ? -1 : kReal(fd, data, size, at);
}
