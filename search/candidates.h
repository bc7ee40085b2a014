// Plans of one graph that are worth measuring whole: one stream always, and the best greedy
// schedule on several streams when its simulation promises to beat one stream.
#pragma once

#include <optional>
#include <vector>

#include "search/rewrite_trail.h"
#include "search/scored_graph.h"

namespace ag {

struct PlanCandidate {
  Graph graph;
  Plan plan;  // Complete and validated; its environment is the request's.
  // Simulated, from the times of the plan's groups; kFailedGroupNs when one of them failed.
  double makespan_ns = kFailedGroupNs;
  int step = RewriteTrail::kInput;  // The graph's, in the trail.
};

struct OneStreamOptions {
  bool grouped = true;  // false: every operator is its own group (`eager`), nothing is measured.
  // Whether a plan that needs a group whose measurement failed is made all the same: right for the
  // input alone, of which a measurement as a whole has the last word.
  bool allow_failed = false;
};

// All cores, one stream. kUnimplemented: the device lacks an operator of the graph. The failure of
// a group that the plan cannot do without.
StatusOr<PlanCandidate> MakeOneStreamPlan(const Graph& graph, const SearchSetting& setting,
                                          const OneStreamOptions& options = {});

// The greedy plan on 2 to streams_max streams that ends first by simulation, its groups measured on
// the cores of one stream (and on all, where the spec lets a group take them), and pairs of them
// timed together as far as setting.pairs goes. None: the spec or
// the options allow one stream only, or none of these plans ends before `below_ns`.
std::optional<PlanCandidate> MakeStreamsPlan(const Graph& graph, const SearchSetting& setting,
                                             double below_ns);

// One stream first, then the plan on several streams if any.
StatusOr<std::vector<PlanCandidate>> MakePlans(const Graph& graph, const SearchSetting& setting);

// The plan's number of streams that launch something.
int UsedStreams(const Plan& plan);

}  // namespace ag
