// Inputs to begin with: one of each form that files may have. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace ag {

// Models with control flow, functions, sequences, optionals, strings, sparse tensors, data outside,
// open sizes, quantized values, plans in their metadata.
std::vector<std::string> ImportSeeds();

// A plan, its graph, and the device that it is for. The first plan has one stream, the second two.
struct PlanSeeds {
  Graph graph;
  DeviceSpec spec;
  std::vector<Plan> plans;
};
const PlanSeeds& SeedsOfPlans();

}  // namespace ag
