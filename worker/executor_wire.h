// Work items and results between protocol bytes and worker/execute.h.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace ag {

class Executor;

// Runs one serialized WorkItem; `emit` gets each serialized ItemResult, the last with index -1 and
// the status of the item as a whole. A bad item is a result; errors are those of `emit`, and
// kUnavailable when the device is lost (a sticky error): the entry in hand and those after it have
// no result, and nothing will run on this device again.
Status RunWorkItem(Executor& executor, const std::string& item_bytes,
                   const std::function<Status(const std::string&)>& emit);

}  // namespace ag
