// A process that can start no thread, for tests.
#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ag {

// Runs `body` in a child whose address space has no room for stacks; the first threads may have
// those of earlier ones. Returns what `body` returns, 0 to 255; -1: the child did not end by
// itself.
template <class Body>
int RunWithoutThreads(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit none{1 << 20, 1 << 20};
    ::_exit(::setrlimit(RLIMIT_AS, &none) == 0 ? body() : 255);
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

// Sanitizers need address space themselves.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kCanRunWithoutThreads = false;
#else
inline constexpr bool kCanRunWithoutThreads = true;
#endif

}  // namespace ag
