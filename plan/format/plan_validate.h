// The check of plans that come from elsewhere. Pure functions.
#pragma once

#include "plan/plan.h"

namespace ag {

// Checks everything that devices rely on: the digest, ids in range, every operator in exactly one
// group, convex groups, every port placed, complete launches, sufficient waits (each read happens
// after its write and after all earlier readers of reused memory), and places that are in bounds
// and disjoint where lives overlap by happens-before; of a plan with several instances, that the
// batch can be cut so, and the same of one instance. kInvalidArgument: the message says what is
// wrong.
Status ValidatePlan(const Graph& graph, const Plan& plan, const DeviceSpec& spec);

}  // namespace ag
