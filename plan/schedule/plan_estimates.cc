#include "plan/schedule/plan_estimates.h"

#include <limits>
#include <numeric>

#include "plan/fusion/group_dependencies.h"
#include "plan/schedule/schedule_problem.h"

namespace ag {

PlanEstimates EstimatesOf(const Graph& graph, const TimedPlan& timed, double alpha) {
  const std::vector<double> ns = NsOf(timed.times);
  const std::vector<Group>& groups = timed.plan.groups;
  PlanEstimates estimates;
  estimates.sum_ns = std::accumulate(ns.begin(), ns.end(), 0.0);
  estimates.critical_path_ns = CriticalPathNs(graph, groups, ns);
  estimates.mixed_ns = estimates.sum_ns + alpha * estimates.critical_path_ns;
  estimates.makespan_ns = timed.makespan_ns;
  estimates.groups = static_cast<int>(groups.size());
  if (!timed.failure.ok()) {
    estimates.sum_ns = estimates.critical_path_ns = estimates.mixed_ns =
        std::numeric_limits<double>::infinity();
  }
  return estimates;
}

}  // namespace ag
