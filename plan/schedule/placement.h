// Buffer assignment: where each tensor of a plan lies. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace ag {

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

}  // namespace ag
