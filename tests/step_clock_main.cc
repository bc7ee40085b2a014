// A module for LD_PRELOAD that moves the wall clock of its process, for tests/faults: the file that
// AUTOGRAPH_CLOCK_STEP names has the seconds, and is read at every look. Other clocks go on as they
// are. Children of autographd and autograph-worker do not load it: a sandbox may not open the file.
// Thread-safe.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace {

// A program that starts the coordinator or a worker hands the module on.
const bool kIsOurs = [] {
  const bool is_ours = std::strncmp(program_invocation_short_name, "autograph", 9) == 0;
  if (is_ours) ::unsetenv("LD_PRELOAD");
  return is_ours;
}();

long StepSeconds() {
  static const char* const kPath = std::getenv("AUTOGRAPH_CLOCK_STEP");
  const int fd = kPath == nullptr || !kIsOurs ? -1 : ::open(kPath, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[16] = "";
  (void)!::read(fd, text, sizeof(text) - 1);
  ::close(fd);
  return std::atol(text);
}

template <class Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  static auto* const kReal = Real<int(clockid_t, timespec*)>("clock_gettime");
  const int result = kReal(clock, time);
  if (result == 0 && clock == CLOCK_REALTIME) time->tv_sec += StepSeconds();
  return result;
}

extern "C" int gettimeofday(timeval* time, void* zone) noexcept {
  static auto* const kReal = Real<int(timeval*, void*)>("gettimeofday");
  const int result = kReal(time, zone);
  if (result == 0) time->tv_sec += StepSeconds();
  return result;
}

extern "C" time_t time(time_t* out) noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}
