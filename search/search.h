// The search of AutoGraph (AAAI 2023, Algorithm 1): a queue of whole graphs, ordered by measured
// speedup. Each round takes the first graph, rewrites it by backtracking scored by estimate,
// measures the best few results, and keeps those that are not slower than the best. It stops when
// the queue is empty or a budget is spent. A pure library: it reaches devices only through a
// Measurer, and time only through a Clock. One FindPlan calls its Measurer and the request's
// functions from one thread at a time. While its Measurer or `cancelled` is called none of its
// threads does anything else. Several may run at once.
#pragma once

#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "graph/graph.h"
#include "plan/candidate.h"
#include "plan/fusion/kernel_rivals.h"
#include "plan/fusion/learned_times.h"
#include "plan/fusion/pair_problem.h"
#include "plan/measurement.h"
#include "plan/plan.h"
#include "plan/schedule/planner.h"
#include "rules/match/rewrite.h"
#include "search/partition.h"
#include "search/region_store.h"
#include "search/search_log.h"

namespace ag {

// The source of measurements: the cache first, then a worker. Calls block; the search waits.
// Returns one result per request, in order; a failed one is a status, never a number. Called by one
// thread at a time.
class Measurer {
 public:
  virtual ~Measurer() = default;
  virtual std::vector<StatusOr<Measurement>> MeasureGroups(
      const std::vector<GroupProblem>& problems) = 0;
  GroupMeasurer ForGroups() {
    return [this](const std::vector<GroupProblem>& problems) { return MeasureGroups(problems); };
  }

  // Measures two groups started together. Optional: kUnimplemented by default.
  virtual std::vector<StatusOr<Measurement>> MeasurePairs(const std::vector<PairProblem>& pairs);

  // The purpose of a timing. kRanking tells which candidates are better, in a few paired blocks.
  // kVerdict continues until it is sure which one is faster, or until the device's time for it is
  // spent.
  enum class Effort { kRanking, kVerdict };
  // Measures interleaved with candidates[0], the input. An error status: none could be timed.
  virtual StatusOr<std::vector<PlanTiming>> MeasurePlans(const std::vector<Candidate>& candidates,
                                                         Effort effort) = 0;

  // Sets the time, by the search's clock, until which later requests are to be answered; entries
  // not reached by then are kCancelled. Optional.
  virtual void EndBy(Nanos) {}
  // Returns kernels that are faster inside the candidate's plan than its own, although they were a
  // little slower alone. Optional: none by default.
  virtual StatusOr<std::vector<KernelChoice>> RefinePlan(const Candidate& candidate);
};

// The most ways to run a batch in parts that a search tries (SearchLimits::instance_sizes_max).
inline constexpr int kInstanceSizesMax = kBatchPartsMax;

// Counts are the budget; times are backstops (docs/design.md, Search).
struct SearchLimits {
  int rounds_max = 8;         // Graphs taken from the outer queue.
  int expansions_max = 1000;  // Graphs expanded by backtracking, per round.
  int graphs_max = 5000;      // Graphs scored, per round.
  // A round also ends when so many graphs in a row brought no smaller estimate (more of an input
  // of fewer than 1,000 nodes, search/best_estimate.h), and the search after three rounds in a row
  // without a faster plan; 0: neither.
  int stale_graphs_max = 500;
  int detour_max = 4;      // Rewrites in a row without a gain.
  int candidates_max = 8;  // Whole graphs measured per round (the paper's top-K is 20).
  int groups_max = 1000;   // Distinct groups requested, per search.
  // Graphs scored inside cells (search/cell_search.h) before the rounds, per search; 0: cells are
  // not searched. And the distinct groups requested for them.
  int cell_graphs_max = 3000;
  int cell_groups_max = 200;
  // Sizes of instances that are tried on the input, of 4, 1, 8, 2 and 16 samples, in this order,
  // where the samples of its batch do not depend on each other (graph/batch/samples.h); 0: none.
  int instance_sizes_max = 0;
  // Pairs of groups timed together, per search. Only on a device that deals blocks out to any free
  // core (DeviceSpec::block_outputs); on other devices each stream has its own cores.
  int pairs_max = 8;
  // Whole plans that are tuned, per search: first the layout of the input's plan, where plans in
  // several layouts are timed; then the kernels (Measurer::RefinePlan) of the input's plan and of
  // the finalists, the best first. After one for which the time left may not suffice, no more are
  // tuned.
  int refines_max = 6;
  // Over all rounds; 0: only the limits above. A replay sets them (ReplayLimits).
  int expansions_total_max = 0;
  int graphs_total_max = 0;
  int plans_total_max = std::numeric_limits<int>::max();  // Plans timed, over all rounds.
  // Groups requested before the input is timed, and those of them that are alternatives to its
  // cover.
  int input_groups_max = std::numeric_limits<int>::max();
  int input_alternatives_max = std::numeric_limits<int>::max();
  int cell_takes_max = std::numeric_limits<int>::max();  // As SearchCounts::cell_takes.
  Nanos time_max{60'000'000'000};                        // Until the last round ends.
  Nanos comparison_max{30'000'000'000};  // Until the final comparison ends, counted from time_max.
};

// What of the search takes place.
enum class SearchMethod {
  kOurs,
  kPaper,           // AutoGraph (AAAI 2023): pieces, dynamic programming, the mixed estimate.
  kPaperWithoutDp,  // Its ablation: each piece by itself (figure 10, "w/o DP").
  kNoRewrites,      // Its other one: the input's own graph with the best plan ("w/o Opt").
};

struct SearchOptions {
  SearchMethod method = SearchMethod::kOurs;
  PartitionOptions partition;  // The paper's methods only.
  double alpha = 0.25;         // Weight of the critical path in the mixed estimate (the paper's).
  double beta = 1.1;           // Backtracking keeps graphs below beta x best (the paper's).
  int streams_max = 0;         // 0: the spec's.
  SearchLimits limits;
};

struct AppliedRewrite {
  std::string rule;
  int count = 0;
  double gain_ns = 0;  // Sum of the differences of estimates.
  // Measured (server/pipeline/rewrite_gains.h): the time of the plan's rewrites without this rule's
  // over that of all of them, side by side. Nothing: gain_ns is all that is known.
  std::optional<Ratio> gain = std::nullopt;
  std::vector<std::string> also_left_out = {};  // Rules that lacked places without this one's.
};

// One rewrite on the way from the input to a plan's graph. It is valid for the graph that the steps
// before it make.
struct RewriteStep {
  Rewrite rewrite;
  bool begins_round = false;  // The graph before it was cleaned up as a whole.
  double gain_ns = 0;         // The estimate before it minus the one after it.
};

struct SearchProgress {
  // "measuring groups", "measuring pairs of groups", "rewriting", "measuring plans",
  // "refining kernels"
  std::string stage;
  int round = 0;
  int graphs = 0;
  int candidates = 0;
  double best_speedup = 1;  // The best of the candidates measured so far.
};

struct SearchResult;

struct SearchRequest {
  Graph input;  // Imported and cleaned up.
  const RuleSet* rules = nullptr;
  DeviceSpec spec;
  Environment environment;
  Policy policy;
  SearchOptions options;
  int threads = 1;  // Threads that score graphs. The result does not depend on it.
  std::function<void(const SearchProgress&)> on_progress;  // May be null.
  std::function<bool()> cancelled;                         // May be null. Called often.
  // Asked between the steps of a round, and before the first one. When it is true, on_best gets
  // what the search would return now, by the timings that ranked its plans, with kGoesOn. The time
  // that on_best takes is the search's. Both may be null.
  std::function<bool()> wants_best;
  std::function<void(const SearchResult&)> on_best;
};

// Why a search ended.
enum class StopReason {
  kNone,  // Nothing was left to try.
  kRounds,
  kExpansions,
  kGraphs,
  kStale,
  kGroups,
  kTime,
  kUnavailable,  // Plans could not be measured any more.
  kCancelled,
  kGoesOn  // It has not ended (SearchRequest::on_best).
};

// A plan that was measured in the final comparison.
struct FoundPlan : Candidate {
  std::vector<AppliedRewrite> rewrites;  // In the order of first application.
  std::vector<RewriteStep> steps;        // One by one (search/repeat_rewrites.h).
  PlanTiming timing;                     // From the final comparison, paired with the input.
  // Simulated makespan of `plan` with the times of its groups; 0: one of them could not be
  // measured.
  double estimate_ns = 0;
};

// The winner, or the input itself when nothing beat it. Then `timing` has the input's times,
// speedup is exactly 1, and the verdict is that of the best rival.
struct SearchResult : FoundPlan {
  // The other plans that were FASTER than the input, the best first: replacements for a winner that
  // fails its confirmation.
  std::vector<FoundPlan> runners_up;
  Plan input_plan;
  Plan unfused_plan;
  PlanTiming input_timing;
  PlanTiming unfused_timing;
  double input_estimate_ns = 0;  // As estimate_ns, of `input_plan`.
  StopReason stop_reason = StopReason::kNone;
  // Counts reached over all rounds.
  int rounds = 0, expansions = 0, graphs = 0, candidates = 0;
  int plans_timed = 0;      // In rounds.
  double best_speedup = 1;  // As in SearchProgress; `timing` is what the final comparison says.
  int input_groups = 0, input_alternatives = 0;
  // Before the rounds: graphs scored inside cells, groups requested for them, and tries to take
  // what was found there.
  int cell_graphs = 0, cell_groups = 0, cell_takes = 0;
  int instance_sizes = 0;          // Sizes of instances tried on the input.
  std::vector<RegionUse> regions;  // The distinct cells, in the order in which they were searched.
  int groups_measured = 0, groups_failed = 0;
  // What counts for groups_max: these, and a group that several forms of cells asked for once for
  // each of them.
  int groups_asked = 0;
  int pairs_measured = 0, pairs_failed = 0;
  int plans_refined = 0;  // All for which it was requested.
  double overlap = 1;     // The overlap fitted to the pairs (plan/schedule/contention_model.h).
  std::vector<std::string> warnings;  // For example a rule that matched and could not be applied.
  SearchLog log;
};

// How far the space of graphs was searched.
enum class SearchState {
  kComplete,     // To its end, or to a limit of counts.
  kStopped,      // Ended by time, a cancellation or a lost device, or not yet.
  kNotSearched,  // The same, before a graph was scored: nothing is known about rewrites.
};
// Returns the state for a result's fields.
SearchState SearchStateOf(StopReason stop_reason, int rounds, int cell_graphs);

// Returns the best plan by measurement. A search that was cancelled or ran out of time returns what
// it has, with a stop_reason. kUnimplemented: the device cannot run the input; the message names
// the operator. Else the Measurer's error, when even the input could not be timed. `regions` may be
// null; an error of it is a warning.
StatusOr<SearchResult> FindPlan(const SearchRequest& request, Measurer& measurer, Clock& clock,
                                RegionStore* regions = nullptr);

// Returns limits that repeat a search which time stopped: the counts that it reached, and no time
// limit. `used` are its own limits. With equal measurements, and with MemoryRegions(result.regions)
// where the search had a store of regions, the repetition gives a byte-identical plan.
SearchLimits ReplayLimits(const SearchLimits& used, const SearchResult& result);

}  // namespace ag
