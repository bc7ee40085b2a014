// Why a server cannot listen at an address: gRPC says only that it cannot.
#pragma once

#include <string>

#include "base/status.h"

namespace ag {

// Tries to bind a socket of its own to HOST:PORT or unix:PATH and says what came of it, as "cannot
// listen on 127.0.0.1:80: permission denied ...". kUnavailable: the address is in use;
// kFailedPrecondition: no permission, or no such address here; kInvalidArgument: it is no address.
// Also an error when the socket could be bound: the reason is gone, or not known.
Status ListenError(const std::string& address);

}  // namespace ag
