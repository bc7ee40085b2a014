// Plans of several instances on any device (Plan::instances).
#pragma once

#include "device/api/device.h"

namespace ag {

// Returns an executable that runs the plan's one instance on each part of the caller's tensors, in
// the order of the samples: one arena and one set of kernels for all. A run's time is the sum;
// a trace has each group once for each instance. From evicted caches the first instance begins so.
// Calls device.Build for the instance. REQUIRES: ValidatePlan accepted the plan.
StatusOr<std::unique_ptr<Executable>> BuildInstances(Device& device, const BuildRequest& request);

}  // namespace ag
