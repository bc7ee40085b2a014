// Plans in segments on any device (Segment in plan/plan.h).
#pragma once

#include "device/api/device.h"

namespace ag {

// Returns an executable that runs the plan's segments on parts of the batch, depth first: a segment
// runs when the samples of its part are there, in the order of the samples. All segments share the
// memory of one arena where the device can; each has one set of kernels for all its runs. A tensor
// between segments has a buffer of its own. A run's time is the sum of its runs'. A trace has each
// group once for each run, the groups numbered through all segments. From evicted caches each
// run of the whole begins so. Calls device.Build for each segment. REQUIRES: ValidatePlan accepted
// the plan.
StatusOr<std::unique_ptr<Executable>> BuildSegments(Device& device, const BuildRequest& request);

}  // namespace ag
