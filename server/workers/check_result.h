// The one validation of what a worker measured. Whoever takes a result that has passed it need not
// look at its figures again. Pure function.
#pragma once

#include "server/workers/worker_pool.h"

namespace ag {

// Returns kInvalidArgument when the result says that it is OK and has a figure that nobody can have
// measured: not finite, not positive, outside its interval, a count out of range; or when it names
// other outputs than the item's. Figures of a result that says that it failed do not count.
Status CheckResult(const ItemRequest& item, const EntryResult& result);

}  // namespace ag
