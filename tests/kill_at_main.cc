// A module for LD_PRELOAD that kills its process at one of its syncs to the disk, for
// tests/long/kill_points.py: each commit of a store ends with one. AUTOGRAPH_KILL_AT is "N before"
// or "N after" (the N-th sync, from 1), and AUTOGRAPH_SYNCS names a file that gets the number of
// syncs so far. Children of the process do not load it. Thread-safe.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

struct Settings {
  int at = 0;
  bool after = false;
  std::string count_path;
};

Settings ReadSettings() {
  Settings settings;
  if (const char* text = std::getenv("AUTOGRAPH_KILL_AT"); text != nullptr) {
    settings.at = std::atoi(text);
    settings.after = std::strstr(text, "after") != nullptr;
  }
  if (const char* path = std::getenv("AUTOGRAPH_SYNCS"); path != nullptr) {
    settings.count_path = path;
  }
  // A program that starts the coordinator hands the module on.
  if (std::strcmp(program_invocation_short_name, "autographd") == 0) ::unsetenv("LD_PRELOAD");
  return settings;
}

const Settings kSettings = ReadSettings();
std::atomic<int> syncs{0};

void WriteCount(int count) {
  if (kSettings.count_path.empty()) return;
  const int fd =
      ::open(kSettings.count_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return;
  char text[16];
  const int size = std::snprintf(text, sizeof text, "%d", count);
  (void)!::write(fd, text, static_cast<size_t>(size));
  ::close(fd);
}

int Sync(const char* name, int fd) {
  using Real = int (*)(int);
  const auto real = reinterpret_cast<Real>(::dlsym(RTLD_NEXT, name));
  const int number = ++syncs;
  if (number == kSettings.at && !kSettings.after) ::kill(::getpid(), SIGKILL);
  const int result = real(fd);
  if (number == kSettings.at) ::kill(::getpid(), SIGKILL);
  WriteCount(number);
  return result;
}

}  // namespace

extern "C" int fsync(int fd) { return Sync("fsync", fd); }
extern "C" int fdatasync(int fd) { return Sync("fdatasync", fd); }
extern "C" int syncfs(int fd) { return Sync("syncfs", fd); }
