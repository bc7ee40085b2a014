// Tuning: makes a plan whose groups, layouts, kernels and streams come from measurements on the
// device. One thread at a time for one device.
#pragma once

#include "plan/estimator.h"
#include "runtime/own_plan.h"

namespace ag {

// Times every kernel of every group, makes a plan by these times, and compares kernels that are
// close inside the plan. With options.streams == 0 and grouping, also refines up to two plans on
// several streams that promise a gain by simulation and times them beside the plan of one stream,
// which stays unless another is FASTER. The plan's environment is the device's. REQUIRES: nothing
// else measures on the host meanwhile (MeasureAlone).
StatusOr<Plan> TunePlan(const Graph& graph, Device& device, const OwnPlanOptions& options);

// Returns the plan that follows from `times`.
StatusOr<Plan> PlanByTimes(const Graph& graph, const DeviceSpec& spec, GroupTimes& times,
                           const OwnPlanOptions& options, int streams);

}  // namespace ag
