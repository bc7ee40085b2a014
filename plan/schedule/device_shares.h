// List scheduling of groups that each take a share of the device's cores. Pure functions.
#pragma once

#include <vector>

#include "plan/schedule/schedule_problem.h"

namespace ag {

// Returns streams by list scheduling under a resource limit (Garey and Graham, "Bounds for
// multiprocessor scheduling with resource constraints", SIAM J. Comput. 1975): whenever a group
// ends, the ready groups begin, the one with the longest remaining path first (Hu 1961; Coffman,
// "Computer and Job-Shop Scheduling Theory", 1976), each only if a stream is free and the cores
// that it takes are. So a long path is not slowed down by groups that can wait, where GreedyStreams
// places a group at once, beside whatever runs.
//
// Of several free streams it prefers the one whose last launch the group reads, then the one that
// ended last: the order of that stream says without an event why the group begins only then. A
// group that takes more cores than are free begins when nothing runs. Of V groups with E edges it
// looks at most V + E times, whenever a group or a wait ends, at all ready groups: costs
// O((V + E) ready (log ready + streams x predecessors)).
std::vector<Stream> DeviceShares(const ScheduleProblem& problem);

}  // namespace ag
