// The simulated time of a plan. Pure functions.
#pragma once

#include <vector>

#include "plan/plan.h"
#include "plan/schedule/sharing.h"

namespace ag {

// Returns the end of the last launch in a simulation with the spec's streams, events and cores. All
// groups that run beside each other have the same slower speed (SpeedBeside). Infinity: streams
// wait for each other in a cycle.
double MakespanNs(const Graph& graph, const Plan& plan, const std::vector<double>& group_ns,
                  const DeviceSpec& spec, const Sharing& sharing = {});

// Two groups of different streams that overlapped in the simulation, and for how long.
struct BesidePair {
  int first = 0;  // first < second.
  int second = 0;
  double ns = 0;
};
// Returns all overlapping pairs, the longest first. Empty: streams wait for each other in a cycle.
std::vector<BesidePair> PairsBeside(const Graph& graph, const Plan& plan,
                                    const std::vector<double>& group_ns, const DeviceSpec& spec,
                                    const Sharing& sharing = {});

}  // namespace ag
