#include "search/search.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "search/backtracking.h"
#include "search/finals.h"

namespace ag {
namespace {

// Other covers of the input whose groups are measured as well, so that the input, the denominator
// of every speedup, is as good as grouping makes it. Two batches.
constexpr int kInputAlternativesMax = 2 * kGroupBatchMax;

class PlanSearch {
 public:
  PlanSearch(const SearchRequest& request, Measurer& measurer, Clock& clock)
      : request_(request),
        measurer_(measurer),
        run_(request, clock),
        rules_(request.rules == nullptr
                   ? RuleSet()
                   : request.rules->Without({}, request.policy.nonfinite_strict)),
        times_(request.spec, measurer,
               {.groups_max = request.options.limits.groups_max,
                .stop = [this] { return run_.Over(); }}),
        pairs_(request.spec, measurer, request.options.limits.pairs_max),
        setting_{request_, rules_, times_, pairs_, run_} {}

  StatusOr<SearchResult> Run();

 private:
  Status PlanInput();
  Status MeasureInput();
  void SearchRounds();
  void SearchFrom(const RankedGraph& root);
  std::vector<PlanCandidate> PlansOf(const std::vector<RankedGraph>& graphs);
  bool MeasureRound(std::vector<PlanCandidate> plans, const std::vector<RankedGraph>& graphs);
  void Enqueue(RankedGraph graph, double speedup);
  void RunFinals(SearchResult* result);
  void TakeWinners(const std::vector<size_t>& finalists, const std::vector<PlanTiming>& timings,
                   SearchResult* result) const;
  SearchResult InputResult() const;

  const SearchRequest& request_;
  Measurer& measurer_;
  SearchRun run_;
  const RuleSet rules_;
  GroupTimesCache times_;
  PairTimes pairs_;
  const SearchSetting setting_;
  RewriteTrail trail_;

  PlanCandidate input_;
  RankedGraph input_graph_;
  StatusOr<PlanCandidate> eager_ = Err(StatusCode::kCancelled, "eager: not planned");
  PlanTiming input_timing_{.status = Err(StatusCode::kCancelled, "input: not measured")};
  std::vector<MeasuredPlan> measured_;
  absl::flat_hash_set<StructureHash> measured_graphs_;
  // Graphs to search from by (-speedup, digest): the fastest first.
  std::map<std::pair<double, Digest>, RankedGraph> queue_;
  double best_speedup_ = 1;
  StopReason stop_ = StopReason::kNone;
};

StatusOr<SearchResult> PlanSearch::Run() {
  AG_TRY(PlanInput());
  if (run_.Cancelled()) {
    stop_ = StopReason::kCancelled;
  } else {
    AG_TRY(MeasureInput());
    SearchRounds();
  }
  SearchResult result = InputResult();
  RunFinals(&result);
  result.stop_reason = StopReasonName(stop_);
  result.warnings = run_.warnings();
  return result;
}

Status PlanSearch::PlanInput() {
  run_.Report("measuring groups");
  AG_TRY(ScoreMeasured(request_.input, setting_));
  WantingTimes wanting(times_);
  AG_TRY(FormGroups(request_.input, request_.spec, request_.policy, wanting));
  times_.MeasureWanted(kInputAlternativesMax);
  AG_LET(input_, MakeOneStreamPlan(request_.input, setting_, {.allow_failed = true}));
  AG_LET(ScoredGraph scored, ScoreGraph(request_.input, setting_));
  input_graph_ = {.graph = request_.input, .estimate_ns = scored.estimate_ns};
  eager_ = MakeOneStreamPlan(request_.input, setting_, {.grouped = false, .allow_failed = true});
  return OkStatus();
}

// Times the input, and beside it the input's own graph on several streams.
Status PlanSearch::MeasureInput() {
  std::optional<PlanCandidate> streams =
      MakeStreamsPlan(request_.input, setting_, input_.makespan_ns);
  std::vector<const PlanCandidate*> candidates;
  if (streams) candidates.push_back(&*streams);
  run_.Report("measuring plans");
  AG_LET(std::vector<PlanTiming> timings,
         MeasureAgainstInput(measurer_, input_, candidates, Measurer::Effort::kRanking));
  input_timing_ = timings[0];
  measured_graphs_.insert(HashOfStructure(request_.input));
  double speedup = 1;
  if (streams && timings[1].status.ok()) {
    speedup = std::max(speedup, timings[1].speedup);
    measured_.push_back({*std::move(streams), timings[1]});
  }
  Enqueue(input_graph_, speedup);
  return OkStatus();
}

void PlanSearch::Enqueue(RankedGraph graph, double speedup) {
  best_speedup_ = std::max(best_speedup_, speedup);
  run_.SetBestSpeedup(best_speedup_);
  const Digest digest = graph.graph.digest();
  queue_.emplace(std::pair{-speedup, digest}, std::move(graph));
}

// AutoGraph's Algorithm 1.
void PlanSearch::SearchRounds() {
  while (!queue_.empty() && stop_ != StopReason::kUnavailable) {
    StopReason reason = run_.OverReason();
    if (reason == StopReason::kNone && run_.counts.rounds >= request_.options.limits.rounds_max) {
      reason = StopReason::kRounds;
    }
    if (reason != StopReason::kNone) {
      stop_ = reason;
      return;
    }
    ++run_.counts.rounds;
    SearchFrom(queue_.extract(queue_.begin()).mapped());
  }
}

void PlanSearch::SearchFrom(const RankedGraph& root) {
  Backtracking backtracking(setting_, trail_);
  const std::vector<RankedGraph> graphs = backtracking.Run(root, measured_graphs_);
  if (backtracking.stop() != StopReason::kNone) stop_ = backtracking.stop();
  if (run_.Cancelled()) return;
  std::vector<PlanCandidate> plans = PlansOf(graphs);
  if (plans.empty()) return;
  run_.Report("measuring plans");
  if (MeasureRound(std::move(plans), graphs)) return;
  stop_ = run_.Cancelled() ? StopReason::kCancelled : StopReason::kUnavailable;
}

std::vector<PlanCandidate> PlanSearch::PlansOf(const std::vector<RankedGraph>& graphs) {
  std::vector<PlanCandidate> all;
  for (const RankedGraph& graph : graphs) {
    measured_graphs_.insert(HashOfStructure(graph.graph));
    StatusOr<std::vector<PlanCandidate>> plans = MakePlans(graph.graph, setting_);
    if (!plans.ok()) {
      run_.Warn(fmt::format("candidate: {}", Message(plans.status())));
      continue;
    }
    ++run_.counts.candidates;
    for (PlanCandidate& plan : *plans) {
      plan.step = graph.step;
      all.push_back(std::move(plan));
    }
  }
  return all;
}

// Returns false when nothing could be measured. A candidate without a timing is left out.
bool PlanSearch::MeasureRound(std::vector<PlanCandidate> plans,
                              const std::vector<RankedGraph>& graphs) {
  std::vector<const PlanCandidate*> pointers;
  for (const PlanCandidate& plan : plans) pointers.push_back(&plan);
  const StatusOr<std::vector<PlanTiming>> timings =
      MeasureAgainstInput(measurer_, input_, pointers, Measurer::Effort::kRanking);
  if (!timings.ok()) {
    if (!run_.Cancelled()) run_.Warn("measuring plans: " + Message(timings.status()));
    return false;
  }
  std::map<int, double> speedups;  // Of each graph's best plan, by step.
  for (size_t i = 0; i < plans.size(); ++i) {
    const PlanTiming& timing = (*timings)[i + 1];
    if (!timing.status.ok()) {
      run_.Warn(fmt::format("candidate: {}", Message(timing.status)));
      continue;
    }
    double& speedup = speedups[plans[i].step];
    speedup = std::max(speedup, timing.speedup);
    measured_.push_back({std::move(plans[i]), timing});
  }
  const double bar = best_speedup_;
  for (const RankedGraph& graph : graphs) {
    const auto it = speedups.find(graph.step);
    if (it != speedups.end() && it->second >= bar) Enqueue(graph, it->second);
  }
  return true;
}

// The answer when nothing beats the input.
SearchResult PlanSearch::InputResult() const {
  SearchResult result;
  result.graph = request_.input;
  result.plan = input_.plan;
  result.input_plan = input_.plan;
  result.input_timing = input_timing_;
  if (eager_.ok()) result.eager_plan = eager_->plan;
  result.eager_timing.status =
      eager_.ok() ? Err(StatusCode::kCancelled, "eager: not measured") : eager_.status();
  result.timing = input_timing_;
  result.input_estimate_ns = input_.makespan_ns < kFailedGroupNs ? input_.makespan_ns : 0;
  result.estimate_ns = result.input_estimate_ns;
  result.rounds = run_.counts.rounds;
  result.expansions = run_.counts.expansions;
  result.graphs = run_.counts.graphs;
  result.candidates = run_.counts.candidates;
  result.groups_measured = times_.measured();
  result.groups_failed = times_.failed();
  result.pairs_measured = pairs_.measured();
  result.pairs_failed = pairs_.failed();
  result.overlap = pairs_.overlap();
  return result;
}

void PlanSearch::RunFinals(SearchResult* result) {
  const std::vector<size_t> finalists = ChooseFinalists(measured_);
  if (run_.Cancelled() && finalists.empty()) return;
  std::vector<const PlanCandidate*> candidates;
  for (const size_t i : finalists) candidates.push_back(&measured_[i].candidate);
  const bool has_eager = eager_.ok() && !run_.Cancelled();
  if (has_eager) candidates.push_back(&*eager_);
  run_.Report("measuring plans");
  StatusOr<std::vector<PlanTiming>> timings =
      MeasureAgainstInput(measurer_, input_, candidates, Measurer::Effort::kVerdict);
  if (!timings.ok()) {
    run_.Warn(fmt::format("finals: {}", Message(timings.status())));
    if (stop_ != StopReason::kCancelled) stop_ = StopReason::kUnavailable;
    return;
  }
  result->input_timing = timings->front();
  timings->erase(timings->begin());
  if (has_eager) {
    result->eager_timing = timings->back();
    timings->pop_back();
  }
  TakeWinners(finalists, *timings, result);
}

void PlanSearch::TakeWinners(const std::vector<size_t>& finalists,
                             const std::vector<PlanTiming>& timings, SearchResult* result) const {
  const std::vector<size_t> winners = ChooseWinners(timings);
  if (winners.empty()) {
    result->timing = result->input_timing;
    result->timing.speedup = result->timing.speedup_low = result->timing.speedup_high = 1;
    result->timing.verdict = BestVerdict(timings);
    return;
  }
  const auto found = [&](size_t winner) {
    const PlanCandidate& candidate = measured_[finalists[winner]].candidate;
    return FoundPlan{candidate.graph, candidate.plan, trail_.Path(candidate.step), timings[winner],
                     candidate.makespan_ns};
  };
  static_cast<FoundPlan&>(*result) = found(winners[0]);
  for (size_t i = 1; i < winners.size(); ++i) result->runners_up.push_back(found(winners[i]));
}

}  // namespace

std::vector<StatusOr<Measurement>> Measurer::MeasurePairs(const std::vector<PairProblem>& pairs) {
  return std::vector<StatusOr<Measurement>>(
      pairs.size(), Err(StatusCode::kUnimplemented, "pairs of groups are not timed here"));
}

StatusOr<SearchResult> FindPlan(const SearchRequest& request, Measurer& measurer, Clock& clock) {
  return PlanSearch(request, measurer, clock).Run();
}

std::string_view SearchStateName(const SearchResult& result) {
  if (result.rounds == 0) return "NOT_SEARCHED";
  const std::string& reason = result.stop_reason;
  const bool cut = reason == "time" || reason == "cancelled" || reason == "unavailable";
  return cut ? "STOPPED" : "COMPLETE";
}

SearchLimits ReplayLimits(const SearchLimits& used, const SearchResult& result) {
  SearchLimits limits = used;
  limits.rounds_max = result.rounds;
  limits.expansions_total_max = result.expansions;
  limits.graphs_total_max = result.graphs;
  if (result.expansions == 0) limits.expansions_max = 0;
  if (result.graphs == 0) limits.graphs_max = 0;
  limits.groups_max = result.groups_measured + result.groups_failed;
  limits.pairs_max = result.pairs_measured + result.pairs_failed;
  limits.time_max = Nanos::max();
  return limits;
}

}  // namespace ag
