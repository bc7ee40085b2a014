// The child's side of the jail. Its process has one thread.
#pragma once

#include "graph/onnx/sandbox/jail_frames.h"

namespace ag {

// Restricts this process: memory and processor time to the limits, system calls to those on memory
// and on descriptors that are already open. Any other call kills the process (SIGSYS).
// kFailedPrecondition: the kernel has no such filter; then no hostile bytes may be read.
Status LockDown(const JailRequest& limits);

// Runs the role "jail": answers one request. Returns the exit code.
int RunJail(int socket_fd);

}  // namespace ag
