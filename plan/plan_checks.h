// The parts of ValidatePlan. Each trusts what the ones before it checked; all return
// kInvalidArgument that says what is wrong.
#pragma once

#include "plan/happens_before.h"

namespace ag {

// Groups: patterns, nodes (each operator in exactly one group, groups convex), ports, layouts.
Status CheckGroups(const Graph& graph, const Plan& plan, const DeviceSpec& spec);

// Streams: launches complete, every read after its write.
StatusOr<HappensBefore> CheckSchedule(const Graph& graph, const Plan& plan, const DeviceSpec& spec);

// Places: complete, in bounds, views consistent, shared bytes never alive twice.
Status CheckPlaces(const Graph& graph, const Plan& plan, const DeviceSpec& spec,
                   const HappensBefore& before);

// "[3:0 plain]", for messages.
std::string PortText(const Port& port);

}  // namespace ag
