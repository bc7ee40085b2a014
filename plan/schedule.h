// From groups to a complete plan: streams and launch order, memory, and the simulated makespan.
#pragma once

#include <vector>

#include "plan/estimator.h"
#include "plan/sharing.h"

namespace ag {

// One stream in an order that keeps memory low.
std::vector<Stream> OneStream(const Graph& graph, const std::vector<Group>& groups);

// Greedy list scheduling: ready groups by longest remaining path, onto the stream where they begin
// first; each of the `streams` streams has StreamCores. A group that begins beside others is taken
// to run as fast as `sharing` says of those that run then. Waits are transitively reduced.
std::vector<Stream> GreedyStreams(const Graph& graph, const std::vector<Group>& groups,
                                  const std::vector<double>& group_ns, const DeviceSpec& spec,
                                  int streams, const Sharing& sharing = {});

// Groups, each on one stream's cores or on all, with what they take, and their launches.
struct Schedule {
  TimedGroups timed;
  std::vector<Stream> streams;
};

// The same where a group may also take all cores, beside nothing: before it begins the other
// streams have ended what was launched before it, and what is launched later waits for it. A group
// is wide when nothing could run beside it, or when the cores make it faster by a certain ratio;
// the ratio whose schedule ends first is taken. `narrow` and `wide` are the same groups, for one
// stream's cores and for all (Group::cores says so; its 0 is the stream's, which has all here). No
// group slows another down: each stream's cores are its own.
Schedule GreedyWideStreams(const Graph& graph, const TimedGroups& narrow, const TimedGroups& wide,
                           const DeviceSpec& spec, int streams);

// Arena places by happens-before: two tensors share bytes only when every reader of the first has
// ended before the writer of the second begins, in every execution the waits allow. View groups
// (FormGroups says which) become places inside other places. kInvalidArgument: streams that wait in
// a circle, or a group that cannot be a view. kResourceExhausted: the arena exceeds the device.
Status PlaceTensors(const Graph& graph, const DeviceSpec& spec, Plan* plan);

// Makes room in the arena of a plan with places for what each group works in while it runs:
// bytes[g] for group g, 0 for none. A workspace is a tensor that lives for its group alone, so it
// may lie where tensors do that have ended or not begun, and where another group's does that cannot
// run beside it. Grows plan->arena_bytes where needed and returns the offset of each, -1 for none.
StatusOr<std::vector<int64_t>> PlaceWorkspaces(const Graph& graph, const DeviceSpec& spec,
                                               const std::vector<int64_t>& bytes, Plan* plan);

// Simulates the launches on the spec's streams, events and cores; the end of the last one. Groups
// that run beside each other slow down alike, as SpeedBeside says. Infinity when streams wait for
// each other in a circle.
double MakespanNs(const Graph& graph, const Plan& plan, const std::vector<double>& group_ns,
                  const DeviceSpec& spec, const Sharing& sharing = {});

// Two groups of different streams that ran beside each other in that simulation, and how long.
struct BesidePair {
  int first = 0;  // first < second.
  int second = 0;
  double ns = 0;
};
// All of them, the longest first. Empty when streams wait for each other in a circle.
std::vector<BesidePair> PairsBeside(const Graph& graph, const Plan& plan,
                                    const std::vector<double>& group_ns, const DeviceSpec& spec,
                                    const Sharing& sharing = {});

// Groups + streams + places, validated: a plan that a device can build. `environment` is left
// empty.
StatusOr<Plan> CompletePlan(const Graph& graph, std::vector<Group> groups,
                            std::vector<Stream> streams, const DeviceSpec& spec,
                            const Policy& policy);

// The whole way for one graph: groups, streams and places by what `times` answers. Several streams
// where the spec lets a group take all cores: the groups of one stream, by GreedyWideStreams.
StatusOr<Plan> MakePlan(const Graph& graph, const DeviceSpec& spec, const Policy& policy,
                        GroupTimes& times, const GroupingOptions& grouping, int streams);

}  // namespace ag
