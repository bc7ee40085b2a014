// The parts of ValidatePlan, to be called in this order: each relies on the checks before it. Each
// returns kInvalidArgument with the mistake. Pure functions.
#pragma once

#include "plan/happens_before.h"

namespace ag {

// Checks groups: patterns, nodes (each operator in exactly one group, convex groups), ports,
// layouts.
Status CheckGroups(const Graph& graph, const Plan& plan, const DeviceSpec& spec);

// Checks streams: complete launches, every read after its write.
StatusOr<HappensBefore> CheckSchedule(const Graph& graph, const Plan& plan, const DeviceSpec& spec);

// Checks places: complete, in bounds, consistent views, shared bytes never needed by two tensors at
// once.
Status CheckPlaces(const Graph& graph, const Plan& plan, const DeviceSpec& spec,
                   const HappensBefore& before);

// Returns "[3:0 plain]", for messages.
std::string PortText(const Port& port);

}  // namespace ag
