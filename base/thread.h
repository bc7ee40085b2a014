// Threads whose start may fail (where nothing can be done about that, std::thread does), and the
// cores for them. Thread-safe.
#pragma once

#include <functional>
#include <thread>

#include "base/status.h"

namespace ag {

// Starts a thread. A fault of the host (AsHostFault): no thread is left, kResourceExhausted.
StatusOr<std::thread> StartThread(std::function<void()> run);

// Returns the number of cores that this process may run on, at least 1.
int UsableCores();

}  // namespace ag
