#include "base/handle.h"

#include <unistd.h>

namespace ag {

// Linux frees the descriptor also when close returns EINTR. A second close could close a descriptor
// that another thread has just opened.
void FdTraits::Free(Raw fd) { ::close(fd); }

}  // namespace ag
