#include "base/handle.h"

#include <unistd.h>

namespace ag {

// Linux frees the descriptor even when close reports EINTR, so there is nothing to retry, and a
// second close could hit a descriptor that another thread has just opened.
void FdTraits::Free(Raw fd) { ::close(fd); }

}  // namespace ag
