// A plan for what was read back from the exported bytes. The search planned another graph: one with
// recipes where the export has folded constants, or with composites that the export expanded.
#pragma once

#include "search/search.h"

namespace ag {

// `plan` of `from`, said of `to`, when both have the same operators and differ in their order, in
// that of commutative operands, and in constants only. kFailedPrecondition: they do not. Validated.
StatusOr<Plan> TransferPlan(const Graph& from, const Plan& plan, const Graph& to,
                            const DeviceSpec& spec);

// A new plan for `graph` with as many streams as `like`, from measured group times; what the cache
// does not know is measured.
struct ReplanRequest {
  Graph graph;
  DeviceSpec spec;
  Policy policy;
  Plan like;
};
StatusOr<Plan> Replan(const ReplanRequest& request, Measurer& measurer);

// Every operator by itself, one stream: how a check's reference runs.
StatusOr<Plan> EagerPlan(const Graph& graph, const DeviceSpec& spec, const Policy& policy);

}  // namespace ag
