// Liveness: the live range of each tensor's memory, for buffer assignment. Plain data and pure
// functions.
#pragma once

#include <map>

#include "plan/happens_before.h"
#include "plan/views.h"

namespace ag {

// The live range of a root of the view forest and of all ports inside it.
struct LiveRange {
  GroupSet accesses;      // Launched groups that read or write any part.
  GroupSet before_write;  // Groups that have ended before any write.
  int writers = 0;
};

// Returns the live ranges by root. Constants have none: they are not tensors of the plan.
std::map<Port, LiveRange> Liveness(const Graph& graph, const Plan& plan, const ViewForest& forest,
                                   const HappensBefore& before);

// Returns true when all accesses to `a` have ended before any write to `b`, in every execution that
// streams and waits allow. Then b may use a's bytes.
bool EndsBefore(const LiveRange& a, const LiveRange& b);

// Returns the forest of a plan's view groups. kInvalidArgument: a group cannot be a view; the
// message names it.
StatusOr<ViewForest> ForestOf(const Graph& graph, const Plan& plan, const DeviceSpec& spec);

}  // namespace ag
