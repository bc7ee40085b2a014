// The order in which a plan's launches are recorded into a graph, and the parents of each. A graph
// of the driver has no streams: it puts a node with several parents on the lane of the parent that
// was recorded first. So critical launches are recorded first, and side work right before the
// launch that joins it (measured elsewhere: fewer lanes, 98 to 29, and shorter replays). Pure
// functions.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace ag::cuda {

struct OrderedLaunch {
  int group = 0;
  int stream = 0;
  std::vector<int> parents;  // Groups, the most critical first; none that another implies.
  int priority = 0;          // 1 on the critical path, else 0.
};

// Returns every launch once, after all of its parents. `group_ns` are predicted times, by group.
// kInvalidArgument: streams wait for each other in a circle.
StatusOr<std::vector<OrderedLaunch>> OrderLaunches(const Plan& plan,
                                                   const std::vector<double>& group_ns);

}  // namespace ag::cuda
