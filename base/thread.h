// Threads whose start may fail. Where nothing can be done about that, std::thread does.
#pragma once

#include <functional>
#include <thread>

#include "base/status.h"

namespace ag {

// Starts a thread. A fault of the host (AsHostFault): no thread is left, kResourceExhausted.
StatusOr<std::thread> StartThread(std::function<void()> run);

}  // namespace ag
