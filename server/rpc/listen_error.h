// What is wrong with an address to listen at, which gRPC does not tell. Thread-safe.
#pragma once

#include <string>

#include "base/status.h"

namespace ag {

// Returns `address` with the port that was bound instead of its own; unix:PATH as it is.
std::string BoundAddress(const std::string& address, int port);

// Tries to bind a socket to HOST:PORT or unix:PATH and returns why it cannot, as "cannot listen on
// 127.0.0.1:80: permission denied ...". kUnavailable: the address is in use; kFailedPrecondition:
// no permission, or no such address on this machine; kInvalidArgument: not an address; kInternal:
// the socket could be bound, so the reason is gone or not known. Never OK.
Status ListenError(const std::string& address);

}  // namespace ag
