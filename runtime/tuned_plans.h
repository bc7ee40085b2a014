// Plans that tuning found, kept for later sessions on this machine: one file each in one folder,
// named by what the plan is bound to. Thread-safe: files appear whole.
#pragma once

#include <string>

#include "runtime/tune_plan.h"

namespace ag {

// Returns $XDG_CACHE_HOME/autograph/tuned-plans, or the same below $HOME/.cache; empty when neither
// variable is an absolute path.
std::string DefaultTunedPlans();

// Returns the plan of TunePlan from options.folder, where it is made and kept when it is not there.
// Measures under the host's measuring lock.
StatusOr<Plan> TunedPlan(const Graph& graph, Device& device, const TuningOptions& options);

// Returns the plan in the file when it fits graph and device, else an error that says why: no file,
// damaged bytes, or a plan for something else.
StatusOr<Plan> ReadTunedPlan(const std::string& path, const Graph& graph, const Device& device);

// Writes the plan and makes the folder when it is missing. After an error the file holds the old
// bytes.
Status WriteTunedPlan(const std::string& path, const Plan& plan);

}  // namespace ag
