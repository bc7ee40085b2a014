// Streams and launch order by the groups' demand for resources: Chen et al., "Opara" (IEEE
// Transactions on Computers, 2025), algorithms 1 and 2. Pure functions.
#pragma once

#include <vector>

#include "plan/schedule/schedule_problem.h"

namespace ag {

// Returns streams by algorithm 1: in topological order each group goes on the stream of its first
// predecessor that no other group follows there yet, else to a new stream. The launch order is that
// of algorithm 2: ready groups that are bound by memory and by computing take turns, each time the
// one that takes the fewest cores, so that groups beside each other want different resources.
//
// The paper knows the class of an operator by its name; here a group is bound by memory when its
// bytes take longer than its operations at the rates of the spec in the policy's precision. When no
// stream is left a group goes to the one with the least work. Costs O((V + E) log V + V streams) on
// V groups.
std::vector<Stream> InterleavedLaunches(const ScheduleProblem& problem);

// Returns whether the bytes of the group (WorkOf) take longer than its operations in the policy's
// precision on the cores that it takes.
bool IsMemoryBound(const ScheduleProblem& problem, int group);

}  // namespace ag
