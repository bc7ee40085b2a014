// A plan as text. Pure functions.
#pragma once

#include <string>

#include "plan/plan.h"

namespace ag {

// Returns a text for people: one line per launch, with streams, waits and kernels.
std::string FormatPlan(const Graph& graph, const Plan& plan);

}  // namespace ag
