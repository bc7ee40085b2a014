// Plans in segments on any device (Segment in plan/plan.h).
#pragma once

#include "device/api/device.h"

namespace ag {

// Returns an executable that runs the plan's segments on parts of the batch, depth first: a segment
// runs when the samples of its part are there, in the order of the samples. All segments share the
// memory of one arena where the device can; each has one set of kernels for all its runs. A tensor
// between segments has a buffer of its own. Runs that go on beside each other (Plan::beside) have
// kernels and memory of their own, and share packed weights where the device can. A run's time is
// the sum of its runs', of several beside each other the time until all had ended. A trace has each
// group once for each run, the groups numbered through all segments, and runs beside each other as
// streams. From evicted caches each run of the whole begins so; kUnimplemented with runs beside
// each other. Calls device.Build for each segment. REQUIRES: ValidatePlan accepted the plan; the
// device outlives the executable.
StatusOr<std::unique_ptr<Executable>> BuildSegments(Device& device, const BuildRequest& request);

}  // namespace ag
