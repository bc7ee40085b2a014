// In which order a plan's launches are recorded into a graph, and after what each comes. A graph of
// the driver keeps no streams: it puts a node with several parents on the lane of the one that was
// recorded first. So what is critical is recorded first, and side work right before the launch that
// joins it (measured elsewhere: fewer lanes, 98 to 29, and shorter replays).
#pragma once

#include <vector>

#include "plan/device_spec.h"
#include "plan/plan.h"

namespace ag::cuda {

struct OrderedLaunch {
  int group = 0;
  int stream = 0;
  std::vector<int> parents;  // Groups, the most critical first; none that another implies.
  int priority = 0;          // 1 on the critical path, else 0.
};

// Every launch once, after all of its parents. `group_ns` are predicted times, by group.
// kInvalidArgument: streams that wait for each other in a circle.
StatusOr<std::vector<OrderedLaunch>> OrderLaunches(const Plan& plan,
                                                   const std::vector<double>& group_ns);

}  // namespace ag::cuda
