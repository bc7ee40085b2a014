// Work items and results between protocol bytes and worker/execute.h. One thread at a time for one
// executor.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"

namespace ag {

class Executor;

// Runs one serialized WorkItem and calls `emit` with each serialized ItemResult; the last one has
// index -1 and the status of the whole item. A bad item is a result, not an error. Returns the
// errors of `emit`, and a LostDevice: the entry in hand and those after it
// then have no result, and nothing more can run on this device in this process.
Status RunWorkItem(Executor& executor, const std::string& item_bytes,
                   const std::function<Status(const std::string&)>& emit);

}  // namespace ag
