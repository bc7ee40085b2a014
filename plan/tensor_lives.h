// Who touches the memory of each tensor, for sharing memory between them.
#pragma once

#include <map>

#include "plan/happens_before.h"
#include "plan/views.h"

namespace ag {

// The life of a root of the view forest, with all that lies inside it.
struct TensorLife {
  GroupSet accesses;      // Launched groups that read or write any of it.
  GroupSet before_write;  // Groups that have ended before anything writes it.
  int writers = 0;
};

// By root. Constants, which are no tensors of the plan, are left out.
std::map<Port, TensorLife> TensorLives(const Graph& graph, const Plan& plan,
                                       const ViewForest& forest, const HappensBefore& before);

// True when all that touches `a` has ended before anything writes to `b`, in every execution that
// streams and waits allow: then b may take a's bytes.
bool EndsBefore(const TensorLife& a, const TensorLife& b);

// The forest of a plan's view groups. kInvalidArgument names a group that cannot be a view.
StatusOr<ViewForest> ForestOf(const Graph& graph, const Plan& plan, const DeviceSpec& spec);

}  // namespace ag
