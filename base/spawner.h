// One thread that starts every child of this process. Linux sends a child the signal it asked for
// with PR_SET_PDEATHSIG when the *thread* that spawned it ends, so a child started by a short-lived
// thread (an RPC's, a test's) would be killed with it. This thread starts with the first child, has
// all signals blocked, and ends only with the process. For process.cc; others use base/process.h.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/status.h"

namespace ag {

struct SpawnRequest {
  std::string program;                   // A path.
  std::vector<std::string> arguments;    // From argv[0] on.
  std::vector<std::string> environment;  // All of it, NAME=value.
  int socket = -1;                       // Becomes kChildSocketFd in the child.
};

// Starts the program in its own process group and returns its process id once it runs. The codes of
// FromErrno, with the program in the message, when it cannot. Thread-safe; posix_spawn, never a
// bare fork, so locks that other threads hold (in gRPC, in CUDA) do not matter.
StatusOr<pid_t> SpawnProgram(const SpawnRequest& request);

}  // namespace ag
