// From groups to a complete plan: streams and launch order, memory, and the simulated makespan.
#pragma once

#include <vector>

#include "plan/estimator.h"

namespace ag {

// One stream in an order that keeps memory low.
std::vector<Stream> OneStream(const Graph& graph, const std::vector<Group>& groups);

// Greedy list scheduling: ready groups by longest remaining path, onto the stream where they begin
// first; `streams` streams share the device's cores evenly. Waits are transitively reduced.
std::vector<Stream> GreedyStreams(const Graph& graph, const std::vector<Group>& groups,
                                  const std::vector<double>& group_ns, const DeviceSpec& spec,
                                  int streams);

// Arena places by happens-before: two tensors share bytes only when every reader of the first has
// ended before the writer of the second begins, in every execution the waits allow. View groups
// (FormGroups says which) become places inside other places. kInvalidArgument: streams that wait in
// a circle, or a group that cannot be a view. kResourceExhausted: the arena exceeds the device.
Status PlaceTensors(const Graph& graph, const DeviceSpec& spec, Plan* plan);

// Simulates the launches on the spec's streams, events and cores; the end of the last one. Groups
// that run beside each other and want more cores than there are slow down alike. Infinity when
// streams wait for each other in a circle.
double MakespanNs(const Graph& graph, const Plan& plan, const std::vector<double>& group_ns,
                  const DeviceSpec& spec);

// Groups + streams + places, validated: a plan that a device can build. `environment` is left
// empty.
StatusOr<Plan> CompletePlan(const Graph& graph, std::vector<Group> groups,
                            std::vector<Stream> streams, const DeviceSpec& spec,
                            const Policy& policy);

}  // namespace ag
