// Rivals: kernels that were close to a plan's kernels when their groups were timed alone. Only a
// run of the whole plan can tell which of the two is faster there. Pure functions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plan/fusion/group_problem.h"
#include "plan/measurement.h"

namespace ag {

// Another kernel for a group of a plan.
struct KernelChoice {
  int group = 0;
  std::string kernel;
  bool operator==(const KernelChoice&) const = default;
};

// The greatest ratio of a rival's time to the time of the group's fastest kernel.
inline constexpr double kRivalRatio = 1.2;

// Returns the measurement of a group; nothing: it was not measured, or it failed.
using MeasuredGroups = std::function<std::optional<Measurement>(const GroupProblem&)>;

// Returns at most one rival for each group: the fastest kernel other than the plan's own. Returns
// none for simulated times, and none for a plan of a cold policy, because plans are compared warm.
std::vector<KernelChoice> CloseRivals(const Graph& graph, const Plan& plan,
                                      const MeasuredGroups& measured);

// Returns the plan with these kernels. REQUIRES: each choice is for a group of the plan.
Plan WithKernels(Plan plan, const std::vector<KernelChoice>& kernels);

}  // namespace ag
