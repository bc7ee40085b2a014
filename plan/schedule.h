// From groups to a complete plan: streams and launch order, memory, and the simulated makespan.
// Pure functions.
#pragma once

#include <vector>

#include "plan/estimator.h"
#include "plan/sharing.h"

namespace ag {

// Returns one stream, in an order that keeps memory low.
std::vector<Stream> OneStream(const Graph& graph, const std::vector<Group>& groups);

// Returns streams by greedy list scheduling: of the ready groups, the one with the longest
// remaining path goes to the stream where it begins first. Each of the `streams` streams has
// StreamCores. A group that begins beside others has the speed that `sharing` gives for the groups
// that run then. Waits are transitively reduced.
std::vector<Stream> GreedyStreams(const Graph& graph, const std::vector<Group>& groups,
                                  const std::vector<double>& group_ns, const DeviceSpec& spec,
                                  int streams, const Sharing& sharing = {});

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

// Sets plan->places and plan->arena_bytes. By happens-before, two tensors share bytes only when
// every reader of the first has ended before the writer of the second begins, in every execution
// that the waits allow. View groups become places inside other places. kInvalidArgument: streams
// wait in a cycle, or a group cannot be a view. kResourceExhausted: the arena exceeds the device's
// memory.
Status PlaceTensors(const Graph& graph, const DeviceSpec& spec, Plan* plan);

// Adds workspaces to the arena of a plan with places: bytes[g] for group g, 0 for none. A workspace
// lives while its group runs. It may share bytes with a tensor that has ended or not begun, and
// with the workspace of a group that cannot run at the same time. Increases plan->arena_bytes where
// needed. Returns the offset of each workspace, -1 for none.
StatusOr<std::vector<int64_t>> PlaceWorkspaces(const Graph& graph, const DeviceSpec& spec,
                                               const std::vector<int64_t>& bytes, Plan* plan);

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

// Returns a validated plan of groups, streams and places, which a device can build. `environment`
// stays empty.
StatusOr<Plan> CompletePlan(const Graph& graph, std::vector<Group> groups,
                            std::vector<Stream> streams, const DeviceSpec& spec,
                            const Policy& policy);

}  // namespace ag
