// What an address of ours can be reached from. Thread-safe.
#pragma once

#include <string>

namespace ag {

// True when only this machine reaches `address` (HOST:PORT or unix:PATH): a socket in the file
// system, or a host all of whose addresses are of the loopback interface. Looks a name up; false
// for a name that there is none of, and for an empty host, which is every interface.
bool IsLoopback(const std::string& address);

}  // namespace ag
