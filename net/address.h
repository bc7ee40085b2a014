// The form of an address: HOST:PORT, [HOST]:PORT for a host with colons, or unix:PATH. Thread-safe.
#pragma once

#include <string>

#include "base/status.h"

namespace ag {

// Returns OK for an address to listen at; with port 0 the system chooses one. kInvalidArgument:
// anything else, also a name without a port, for which gRPC would choose one.
Status CheckListenAddress(const std::string& address);

// The same for the address of a server, which has no port 0.
Status CheckServerAddress(const std::string& address);

// The same as checks of a flag (base/command_line.h): each returns what is wrong, or "".
std::string WrongListenAddress(const std::string& address);
std::string WrongServerAddress(const std::string& address);

}  // namespace ag
