// Plans that tuning found, kept for later sessions on the machine: a file each in one folder, named
// by what the plan is bound to.
#pragma once

#include <string>

#include "device/api/device.h"

namespace ag {

// $XDG_CACHE_HOME/autograph/tuned-plans, or the same below $HOME/.cache. Empty: neither variable
// is an absolute path.
std::string DefaultTunedPlans();

// The plan in the file when it fits graph and device. Else an error that says why; a file that is
// damaged or was made for something else is one as well.
StatusOr<Plan> ReadTunedPlan(const std::string& path, const Graph& graph, const Device& device);

// Makes the folder where it is missing; the file then holds the old bytes or the new ones.
Status WriteTunedPlan(const std::string& path, const Plan& plan);

}  // namespace ag
