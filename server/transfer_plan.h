// Plans for a graph that was read back from exported bytes. The search planned another graph: one
// with recipes where the export has folded constants, or with composites that the export expanded.
// Thread-safe, apart from the measurer.
#pragma once

#include "search/search.h"

namespace ag {

// Returns `plan`, which is for `from`, as a validated plan for `to`. The two graphs may differ in
// the order of operators and of commutative operands, and in constants only; else
// kFailedPrecondition.
StatusOr<Plan> TransferPlan(const Graph& from, const Plan& plan, const Graph& to,
                            const DeviceSpec& spec);

// Makes a new plan for `graph` with as many streams as `like`, from measured group times. Group
// times that the cache does not have are measured.
struct ReplanRequest {
  Graph graph;
  DeviceSpec spec;
  Policy policy;
  Plan like;
};
StatusOr<Plan> Replan(const ReplanRequest& request, Measurer& measurer);

// Returns the plan with every operator by itself on one stream, the reference of a check.
StatusOr<Plan> EagerPlan(const Graph& graph, const DeviceSpec& spec, const Policy& policy);

}  // namespace ag
