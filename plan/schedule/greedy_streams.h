// Streams by list scheduling (Graham, "Bounds on multiprocessing timing anomalies", SIAM J. Appl.
// Math. 1969; by the longest remaining path: Hu, 1961). Pure functions.
#pragma once

#include <vector>

#include "plan/fusion/grouping.h"
#include "plan/schedule/schedule_problem.h"

namespace ag {

// Returns streams by greedy list scheduling: of the ready groups, the one with the longest
// remaining path goes to the stream where it begins first. Each of the problem's streams has
// StreamCores. A group that begins beside others has the speed that `contention_model` gives for
// the groups that run then. Waits are transitively reduced.
std::vector<Stream> GreedyStreams(const ScheduleProblem& problem);

// Groups with their times, each for one stream's cores or for all cores, and their launches.
struct Schedule {
  TimedGroups timed;
  std::vector<Stream> streams;
};

// Returns a schedule as GreedyStreams does, in which a *wide* group takes all cores and runs alone:
// it begins after everything that was launched before it, and later launches wait for it. A group
// becomes wide when nothing could run beside it, or when all cores make it faster by at least a
// certain ratio; of several ratios the one whose schedule ends first is taken. `narrow` and `wide`
// are the same groups for one stream's cores and for all cores (see Group::cores). Narrow groups do
// not slow each other down: each stream has its own cores.
Schedule GreedyWideStreams(const Graph& graph, const TimedGroups& narrow, const TimedGroups& wide,
                           const DeviceSpec& spec, int streams);

}  // namespace ag
