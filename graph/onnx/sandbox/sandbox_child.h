// The child's side of the sandbox. Its process has one thread.
#pragma once

#include "graph/onnx/sandbox/sandbox_frames.h"

namespace ag {

// Restricts this process: memory and processor time to the limits, system calls to those on memory
// and on descriptors that are already open. Any other call kills the process (SIGSYS).
// kFailedPrecondition: the kernel has no such filter; then no hostile bytes may be read.
Status LockDown(const SandboxRequest& limits);

// Runs the role "sandbox": answers one request. Returns the exit code.
int RunSandbox(int socket_fd);

}  // namespace ag
