// From groups to a complete plan on one stream or several. Pure functions.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace ag {

// Returns one stream, in an order that keeps memory low.
std::vector<Stream> OneStream(const Graph& graph, const std::vector<Group>& groups);

// Returns a validated plan of groups, streams and places, which a device can build. `environment`
// stays empty.
StatusOr<Plan> CompletePlan(const Graph& graph, std::vector<Group> groups,
                            std::vector<Stream> streams, const DeviceSpec& spec,
                            const Policy& policy);

}  // namespace ag
