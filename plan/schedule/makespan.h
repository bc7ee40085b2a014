// The simulated time of a plan. Pure functions.
#pragma once

#include <vector>

#include "plan/plan.h"
#include "plan/schedule/contention_model.h"
#include "plan/schedule/schedule_problem.h"

namespace ag {

// Returns the end of the last launch in a simulation with the spec's streams, events and cores. All
// groups that run beside each other have the same slower speed (SpeedUnderContention). Infinity:
// streams wait for each other in a cycle.
//
// It grows with the time of each group as long as no group slows another one down. With contention
// a longer group may end the plan earlier, because others then run beside other ones. What holds:
// it is no less than without contention, and no more than the sum of all groups' times and an event
// for each launch that waits.
double MakespanNs(const Graph& graph, const Plan& plan, const std::vector<double>& group_ns,
                  const DeviceSpec& spec, const Contention& contention = {});
// Returns the same of streams that are in no plan yet. REQUIRES: they launch groups of the problem.
double MakespanNs(const ScheduleProblem& problem, const std::vector<Stream>& streams);

// Two groups of different streams that overlapped in the simulation, and for how long.
struct OverlappingPair {
  int first = 0;  // first < second.
  int second = 0;
  double ns = 0;
};
// Returns all overlapping pairs, the longest first. Empty: streams wait for each other in a cycle.
std::vector<OverlappingPair> OverlappingPairs(const Graph& graph, const Plan& plan,
                                              const std::vector<double>& group_ns,
                                              const DeviceSpec& spec,
                                              const Contention& contention = {});

}  // namespace ag
