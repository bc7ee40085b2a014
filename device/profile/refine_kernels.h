// The last word on kernels: in the plan, among the groups that really run before and after.
#pragma once

#include "device/profile/measured_times.h"

namespace ag {

// Where the second best kernel of a group came within kRivalRatio of the best alone, both are
// traced inside the whole plan, on synthetic weights and interleaved, and the one that is faster
// there is taken. The plan that comes out replaces `plan` only when it is faster as a whole. Groups
// that stand for equal problems keep equal kernels. A simulated device has nothing to refine; a
// plan of a cold policy is left as it is, because traced runs are warm.
inline constexpr double kRivalRatio = 1.2;
StatusOr<Plan> RefineKernels(const Graph& graph, Plan plan, Device& device,
                             const MeasuredTimes& times);

}  // namespace ag
