// The child's side of the jail.
#pragma once

#include "graph/onnx/jail_frames.h"

namespace ag {

// Gives up what an import does not need: memory and processor time above the limits, and every
// system call but those on memory and on descriptors that are open already. Anything else kills the
// process (SIGSYS). kFailedPrecondition: the kernel has no such filter; nothing hostile may be read
// then.
Status LockDown(const JailRequest& limits);

// The role "jail": one request, one answer.
int RunJail(int socket_fd);

}  // namespace ag
