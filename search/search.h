// The search of AutoGraph (AAAI 2023, Algorithm 1): a queue of whole graphs keyed by measured
// latency; pop, rewrite by backtracking scored by estimate, measure the best few, keep those not
// slower than the best; stop when the queue is empty or a budget is spent. A pure library: it
// reaches devices only through Measurer, time only through Clock.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "graph/graph.h"
#include "plan/estimator.h"
#include "plan/kernel_rivals.h"
#include "plan/measurement.h"
#include "plan/pair_problem.h"
#include "plan/plan.h"
#include "rules/rewrite.h"

namespace ag {

// Where measurements come from: the cache first, then a worker. Blocking; the search is parked
// meanwhile. One result per request, in order; a failed one is a status, never a number.
class Measurer {
 public:
  virtual ~Measurer() = default;
  virtual std::vector<StatusOr<Measurement>> MeasureGroups(
      const std::vector<GroupProblem>& problems) = 0;

  // The same of two groups started together. A Measurer need not offer it: then kUnimplemented.
  virtual std::vector<StatusOr<Measurement>> MeasurePairs(const std::vector<PairProblem>& pairs);

  struct Candidate {
    Graph graph;
    Plan plan;
  };
  // What a timing is for: kRanking tells which candidates are worth more, in a few paired blocks;
  // kVerdict goes on until it is sure who is faster, or the device's time for it is spent.
  enum class Effort { kRanking, kVerdict };
  // Interleaved with candidates[0], the input. An error status: none could be timed.
  virtual StatusOr<std::vector<PlanTiming>> MeasurePlans(const std::vector<Candidate>& candidates,
                                                         Effort effort) = 0;

  // When what is asked for from now on should be answered, by the search's clock: entries that were
  // not reached by then are kCancelled. A Measurer need not heed it.
  virtual void EndBy(Nanos) {}
  // Kernels that are faster inside the candidate's plan than those it names, although they were a
  // little slower alone. A Measurer need not know any: then none.
  virtual StatusOr<std::vector<KernelChoice>> RefinePlan(const Candidate& candidate);
};

// Counts are the budget; times are backstops (DESIGN section 5).
struct SearchLimits {
  int rounds_max = 4;         // Pops of the outer queue.
  int expansions_max = 1000;  // Graphs expanded by backtracking, per round.
  int graphs_max = 5000;      // Graphs scored, per round.
  int detour_max = 4;         // Rewrites in a row that do not gain.
  int candidates_max = 8;     // Whole graphs measured per round (the paper's top-K is 20).
  int groups_max = 1000;      // Distinct groups whose measurement is asked for, per search.
  // Pairs of groups that are timed together, per search, where the device deals blocks out to
  // whatever core is free (DeviceSpec::block_outputs); elsewhere each stream has cores of its own,
  // and none is timed.
  int pairs_max = 8;
  // Whole plans that are tuned, per search: the layout of the input's, where plans in several are
  // timed; then the kernels (Measurer::RefinePlan) of the input's and of the finalists, the best
  // first. When the time left may not suffice for one, no further one is.
  int refines_max = 6;
  // Over all rounds; 0: no limit but the ones above. A replay sets them (ReplayLimits).
  int expansions_total_max = 0;
  int graphs_total_max = 0;
  int plans_total_max = std::numeric_limits<int>::max();         // Plans timed, over all rounds.
  int input_groups_max = std::numeric_limits<int>::max();        // Asked for before the input is
  int input_alternatives_max = std::numeric_limits<int>::max();  // timed; of these, alternatives.
  Nanos time_max{60'000'000'000};                                // Until the last round ends,
  Nanos finals_max{30'000'000'000};  // and the finals so long after time_max at the latest.
};

struct SearchOptions {
  double alpha = 0.25;  // Weight of the critical path in the mixed estimate (the paper's).
  double beta = 1.1;    // Backtracking keeps what is below beta x best (the paper's).
  int streams_max = 0;  // 0: what the spec allows.
  uint64_t seed = 1;    // For parts that sample; none does yet: the search draws nothing.
  SearchLimits limits;
};

struct AppliedRewrite {
  std::string rule;
  int count = 0;
  double gain_ns = 0;  // Sum of estimate differences when applied; an estimate.
};

struct SearchProgress {
  // "measuring groups", "measuring pairs of groups", "rewriting", "measuring plans",
  // "refining kernels"
  std::string stage;
  int round = 0;
  int graphs = 0;
  int candidates = 0;
  double best_speedup = 1;  // Of measured candidates so far.
};

struct SearchRequest {
  Graph input;  // Imported and cleaned up.
  const RuleSet* rules = nullptr;
  DeviceSpec spec;
  Environment environment;
  Policy policy;
  SearchOptions options;
  std::function<void(const SearchProgress&)> on_progress;  // May be null.
  std::function<bool()> cancelled;                         // May be null. Asked often.
};

// A plan as it came out of the finals.
struct FoundPlan {
  Graph graph;
  Plan plan;
  std::vector<AppliedRewrite> rewrites;  // In the order of first application.
  PlanTiming timing;                     // Fresh, paired with the input.
  // Simulated makespan of `plan`, from the times of its groups; 0: one of them could not be
  // measured.
  double estimate_ns = 0;
};

// The winner, or the input itself when nothing beat it: then `timing` holds the input's numbers,
// speedup is exactly 1, and the verdict is what the best rival got.
struct SearchResult : FoundPlan {
  // The other plans that were FASTER than the input, best first: what is left to hand out when the
  // winner turns out to be no good.
  std::vector<FoundPlan> runners_up;
  Plan input_plan;
  Plan eager_plan;
  PlanTiming input_timing;
  PlanTiming eager_timing;
  double input_estimate_ns = 0;  // As estimate_ns, of `input_plan`.
  // "exhausted" (nothing left to try); a limit: "rounds", "expansions", "graphs", "groups", "time";
  // "cancelled"; "unavailable" (plans could no longer be measured).
  std::string stop_reason;
  // Counts reached over all rounds.
  int rounds = 0, expansions = 0, graphs = 0, candidates = 0;
  int plans_timed = 0;  // In rounds.
  int input_groups = 0, input_alternatives = 0;
  int groups_measured = 0, groups_failed = 0;
  int pairs_measured = 0, pairs_failed = 0;
  int plans_refined = 0;  // Of which it was asked, whatever came of it.
  double overlap = 1;     // How groups share the device (plan/sharing.h), as the pairs say.
  std::vector<std::string> warnings;  // E.g. a rule that could not be applied where it matched.
};

// Whether the space of graphs was searched.
enum class SearchState {
  kComplete,     // As far as the counts of the request go, or to its end.
  kStopped,      // Time, a cancellation or a device that went away ended it.
  kNotSearched,  // The same, before the first round: the answer says nothing of rewrites.
};
std::string_view SearchStateName(SearchState state);  // "COMPLETE", "STOPPED", "NOT_SEARCHED"
// By a result's figures. A stop_reason that this version does not know is kStopped.
SearchState SearchStateOf(std::string_view stop_reason, int rounds);

// Returns the best plan found, by measurement; Errors: kUnimplemented (the device cannot run the
// input; names the operator), the Measurer's error when not even the input could be timed. A
// cancelled or timed-out search returns what it has, with stop_reason saying so.
StatusOr<SearchResult> FindPlan(const SearchRequest& request, Measurer& measurer, Clock& clock);

// Limits by which a search that was stopped by time can be repeated: the counts it reached, no
// time. With equal measurements the repetition gives a byte-identical plan. `used` are the limits
// it ran under.
SearchLimits ReplayLimits(const SearchLimits& used, const SearchResult& result);

}  // namespace ag
