// What groups wait for, and the paper's estimate from it. Pure functions.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace ag {

// Returns the time of the longest path of groups, each after those that it needs: the sum over the
// groups of the critical path.
double CriticalPathNs(const Graph& graph, const std::vector<Group>& groups,
                      const std::vector<double>& group_ns);

// Returns the paper's estimate (AutoGraph, AAAI 2023): the sum over all groups + alpha x
// CriticalPathNs.
double MixedEstimateNs(const Graph& graph, const std::vector<Group>& groups,
                       const std::vector<double>& group_ns, double alpha);

// Returns for each groups[j] the groups that must end before it begins, ascending. Views are in no
// list: a reader of a view depends on the groups that the view depends on.
std::vector<std::vector<int>> GroupDependencies(const Graph& graph,
                                                const std::vector<Group>& groups);

}  // namespace ag
