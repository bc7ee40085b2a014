// Tuning: a plan whose groups, layouts, kernels and streams come from measurements on the device.
#pragma once

#include "plan/estimator.h"
#include "runtime/own_plan.h"

namespace ag {

// Times every kernel of every group, plans by these times, and lets kernels that are close be
// judged inside the plan. With options.streams == 0 and groups, plans on several streams that
// promise a gain by simulation are refined likewise and timed beside the one of one stream, which
// stays unless another is FASTER. The plan's environment is the device's. REQUIRES: nothing else
// is measured on the host meanwhile (MeasureAlone).
StatusOr<Plan> TunePlan(const Graph& graph, Device& device, const OwnPlanOptions& options);

// The plan by what `times` answers.
StatusOr<Plan> PlanByTimes(const Graph& graph, const DeviceSpec& spec, GroupTimes& times,
                           const OwnPlanOptions& options, int streams);

}  // namespace ag
