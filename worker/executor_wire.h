// Work items and results between protocol bytes and worker/execute.h.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace ag {

class Executor;

// Runs one serialized WorkItem; `emit` gets each serialized ItemResult, the last with index -1 and
// the status of the item as a whole. Errors are those of `emit` only: a bad item is a result.
// kAborted: the device is lost to this process (a sticky error), which must end now.
Status RunWorkItem(Executor& executor, const std::string& item_bytes,
                   const std::function<Status(const std::string&)>& emit);

}  // namespace ag
