// Plans of one graph that are worth a measurement as a whole: always one on one stream, and the
// best schedules on several streams whose simulation ends before one stream's. One thread at a
// time.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "plan/schedule/plan_estimates.h"
#include "search/best_graphs.h"
#include "search/scored_graph.h"

namespace ag {

// The plan is complete and validated; its environment is the request's.
struct PlanCandidate : Candidate, PlanEstimates {
  int step = RewriteTrail::kInput;  // The graph's step in the trail.
  CandidateOrigin origin;
};

struct OneStreamOptions {
  // False: every operator is its own group (`unfused`), and nothing is measured.
  bool grouped = true;
  int cores = 0;  // Of each group; 0: all.
  // Whether to make a plan that needs a group whose measurement failed. Only for the input, which
  // is then judged by a measurement of the whole plan.
  bool allow_failed = false;
};

// Returns a plan on one stream with all cores. kUnimplemented: the device lacks an operator of the
// graph. Else the failure of a group that the plan needs.
StatusOr<PlanCandidate> MakeOneStreamPlan(const Graph& graph, const SearchSetting& setting,
                                          const OneStreamOptions& options = {});

// Returns a plan of the graph of `whole`, from the same step, on one stream for each of these
// parts of the batch, from group times at the part's size. The errors of PartOfBatch
// (graph/batch/part_of_batch.h) and of MakeOneStreamPlan.
StatusOr<PlanCandidate> MakeInstancesPlan(const PlanCandidate& whole, const SearchSetting& setting,
                                          const BatchParts& parts);

// A plan of the whole batch or of MakeInstancesPlan.
struct PlanAtSize {
  const PlanCandidate& candidate;
  double ns = 0;  // As timed; 0: it was not.
};

// Returns plans in segments (plan/schedule/segmenting.h), the most promising first, by the times of
// the groups of `plans`, scaled to what these take, of the graph and from the step of the first of
// them. One that cannot be made is left out. REQUIRES: `plans` has one.
std::vector<PlanCandidate> MakeSegmentsPlans(const SearchSetting& setting,
                                             std::span<const PlanAtSize> plans);

// Returns the plan of a session that measures nothing on the candidate's graph (GuessPlan,
// plan/schedule/planner.h), with the device's own guess of each kernel, where it is another plan
// than the candidate's. `makespan_ns` is an estimate.
std::optional<PlanCandidate> GuessBeside(const PlanCandidate& candidate,
                                         const SearchSetting& setting);

// The most plans of one graph on several streams, and by how much longer the second one may take in
// the simulation. A simulation does not tell schedules that are close.
inline constexpr size_t kStreamsPlansMax = 2;
inline constexpr double kCloseSchedule = 1.1;

// Returns the plan on 2 to streams_max streams with the earliest simulated end, of all schedulers
// (plan/schedule/schedulers.h), and the best one of another scheduler if it is close. Their groups
// are measured on the cores of one stream (and on all cores, where the spec lets a group take
// them), and setting.pairs times pairs of them. Empty: the spec or the options allow one stream
// only, or no such plan ends before `below_ns`.
std::vector<PlanCandidate> MakeStreamsPlans(const Graph& graph, const SearchSetting& setting,
                                            double below_ns);

// Returns the plan on one stream, then the plans on several streams.
StatusOr<std::vector<PlanCandidate>> MakePlans(const Graph& graph, const SearchSetting& setting);

// Returns the plans of the graphs of one round, as MakePlans makes them. Of graphs whose plans on
// one stream have the same groups, in whatever order, only the first has plans: the others would
// take a measurement and tell nothing new. (The paper's search measures them.) A graph that has no
// plan is a warning of setting.run.
std::vector<PlanCandidate> MakePlansOf(const std::vector<RankedGraph>& graphs,
                                       CandidateOrigin origin, const SearchSetting& setting);

// Returns a digest of the plan's groups that does not depend on their order.
Digest DigestOfGroups(const Candidate& candidate);

// Returns the number of streams with launches; of segments, the most of one.
int UsedStreams(const Plan& plan);

}  // namespace ag
