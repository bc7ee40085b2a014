// What is predicted of a plan before it is timed whole: the numbers by which searches compare
// plans. Pure functions.
#pragma once

#include "plan/schedule/planner.h"

namespace ag {

// In nanoseconds. Infinity: the measurement of a group that the plan needs failed.
struct PlanEstimates {
  double mixed_ns = 0;          // The paper's: MixedEstimateNs (plan/fusion/group_dependencies.h).
  double sum_ns = 0;            // Of the times of all groups.
  double critical_path_ns = 0;  // The same along the dearest path of groups.
  double makespan_ns = 0;       // As TimedPlan::makespan_ns.
  int groups = 0;               // Of the plan, views among them.
};

// Returns the estimates of a plan of `graph` by its own groups' times. `alpha` is the weight of the
// critical path in the mixed estimate.
PlanEstimates EstimatesOf(const Graph& graph, const TimedPlan& timed, double alpha);

}  // namespace ag
