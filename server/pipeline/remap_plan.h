// The plan of a graph that was read back from exported bytes. The search planned another graph: one
// with recipes where the export has folded constants, or with composites that the export expanded.
// Pure functions.
#pragma once

#include "plan/plan.h"

namespace ag {

// Returns `plan`, which is for `from`, as a validated plan for `to`. The two graphs may differ in
// the order of operators and of commutative operands, and in constants only; else
// kFailedPrecondition.
StatusOr<Plan> RemapPlan(const Graph& from, const Plan& plan, const Graph& to,
                         const DeviceSpec& spec);

// Returns OK when the two graphs differ in no more than that; else kFailedPrecondition.
Status SameOperators(const Graph& from, const Graph& to);

}  // namespace ag
