// Kernels that came close to those of a plan when their groups were timed alone. Which of two such
// kernels is faster where it stands only the whole plan can tell.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plan/group_problem.h"
#include "plan/measurement.h"

namespace ag {

// Another kernel for a group of a plan.
struct KernelChoice {
  int group = 0;
  std::string kernel;
  bool operator==(const KernelChoice&) const = default;
};

// A rival takes at most so many times what the group's fastest kernel does.
inline constexpr double kRivalRatio = 1.2;

// What is known of a group; nothing when it was not measured or failed.
using MeasuredGroups = std::function<std::optional<Measurement>(const GroupProblem&)>;

// One rival each for the groups that have any: the fastest kernel beside the plan's own. Simulated
// times have none, and neither has a plan of a cold policy: plans are compared warm.
std::vector<KernelChoice> CloseRivals(const Graph& graph, const Plan& plan,
                                      const MeasuredGroups& measured);

// The plan with these kernels in place. REQUIRES: each is of a group of the plan.
Plan WithKernels(Plan plan, const std::vector<KernelChoice>& kernels);

}  // namespace ag
