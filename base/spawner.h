// One thread that starts all children of this process. Linux sends a child its PR_SET_PDEATHSIG
// signal when the *thread* that spawned it ends, so a child of a short-lived thread (an RPC's, a
// test's) would die with that thread. This thread starts with the first child, blocks all signals,
// and ends with the process. For process.cc only; other code uses base/process.h. Thread-safe.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/status.h"

namespace ag {

struct SpawnRequest {
  std::string program;                   // A path.
  std::vector<std::string> arguments;    // From argv[0] on.
  std::vector<std::string> environment;  // The whole environment, NAME=value.
  int socket = -1;                       // Becomes kChildSocketFd in the child.
};

// Starts the program in its own process group and returns its process id. Errors have the codes of
// FromErrno and name the program. Uses posix_spawn, never a bare fork, so locks that other threads
// hold (in gRPC, in CUDA) do no harm.
StatusOr<pid_t> SpawnProgram(const SpawnRequest& request);

}  // namespace ag
