// Liveness: the live range of each tensor's memory, for buffer assignment. Plain data and pure
// functions.
#pragma once

#include <limits>
#include <map>
#include <vector>

#include "plan/happens_before.h"
#include "plan/views.h"

namespace ag {

// The live range of a root of the view forest and of all ports inside it: of the groups that are no
// views, those that read or write any part. Positions are those of HappensBefore::order; a group
// that is not launched comes after every other one when it reads, before when it writes.
struct LiveRange {
  // Adds an access.
  void Add(int group, bool writes, const HappensBefore& before);

  int last_access = -1;
  int first_write = std::numeric_limits<int>::max();
  int writers = 0;
  // Where the groups have several streams; in one stream the positions say all.
  std::vector<int> accesses;
  IndexSet before_write;  // Groups that have ended before any write.
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
