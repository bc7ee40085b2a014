#include "base/thread.h"

#include <sched.h>

#include <algorithm>
#include <system_error>

#include "base/file.h"

namespace ag {

StatusOr<std::thread> StartThread(std::function<void()> run) {
  try {
    return std::thread(std::move(run));
  } catch (const std::system_error& error) {
    return FromErrno(error.code().value(), "start a thread");
  }
}

int UsableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace ag
