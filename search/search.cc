#include "search/search.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "graph/batch/samples.h"
#include "plan/fusion/grouping.h"
#include "plan/schedule/close_layouts.h"
#include "search/backtracking.h"
#include "search/beam_search.h"
#include "search/cell_search.h"
#include "search/finalists.h"
#include "search/region_search.h"

namespace ag {
namespace {

// The most other covers of the input whose groups are measured too, so that the input, the
// denominator of every speedup, has the best grouping. Two batches.
constexpr int kInputAlternativesMax = 2 * kGroupBatchMax;

// The fractions of the search's time by which the input's stages end: its cover is measured,
// alternatives to it, its plan with the groups of its plan on several streams. They leave most of
// the time for rounds, however slow measurements are.
constexpr double kInputCoverEnd = 0.4;
constexpr double kInputAlternativesEnd = 0.3;
constexpr double kInputPlanEnd = 0.5;

// The fraction of the remaining time after which no further size of instances is tried.
constexpr double kInstancesShare = 0.3;
// The fraction of the remaining time that the search inside cells may take.
constexpr double kCellsShare = 0.3;
// SearchRun::round_share where all operators are in cells that were known: what is to be found
// inside them is there, what remains is between them.
constexpr double kKnownRoundShare = 0.1;
// The search ends after so many rounds in a row that made the best measured plan faster by less
// than this factor. Of rounds, too, it makes only its round_share, and two at least.
constexpr int kStaleRoundsMax = 3, kStaleRoundsMin = 2;
constexpr double kRoundGain = 1.001;
// SearchRun::patience grows by it with each of them, so that the last of them is the most thorough.
constexpr double kPatienceFactor = 2;
// A round keeps up to this fraction of the remaining time for timing its plans.
constexpr double kPlansShare = 0.5;
// The cost of refining a plan, in runs of the plan: about 60 runs, and four builds that take as
// long as about 60 runs again, or twice as many.
constexpr double kRefineRuns = 200;

// Returns how much of the operators in cells is in cells that were known.
double KnownShare(const std::vector<RegionUse>& uses) {
  int64_t known = 0, all = 0;
  for (const RegionUse& use : uses) {
    const int64_t operators = int64_t{use.copies} * use.entry.operators;
    all += operators;
    if (use.origin == RegionOrigin::kKnown) known += operators;
  }
  return all == 0 ? 0 : static_cast<double>(known) / static_cast<double>(all);
}

class PlanSearch {
 public:
  PlanSearch(const SearchRequest& request, Measurer& measurer, Clock& clock, RegionStore* regions)
      : request_(request),
        measurer_(measurer),
        regions_(regions),
        run_(request, clock),
        rules_(request.rules == nullptr || request.options.method == SearchMethod::kNoRewrites
                   ? RuleSet()
                   : request.rules->Without({}, request.policy.nonfinite_strict)),
        times_(request.spec,
               [this](const std::vector<GroupProblem>& problems) {
                 run_.Report("measuring groups");
                 return measurer_.MeasureGroups(problems);
               },
               {.groups_max = request.options.limits.groups_max,
                .stop = [this] { return run_.Over(); }}),
        pairs_(request.spec, measurer, request.options.limits.pairs_max),
        pool_(request.threads),
        setting_{request_, rules_, times_, pairs_, run_, pool_} {}

  StatusOr<SearchResult> Run();

 private:
  Status PlanInput();
  StatusOr<RankedGraph> RankInput() const;
  void BeginRound();
  void KeepWhatFits(std::vector<PlanCandidate>* plans);
  void RefineInput();
  void ChooseLayout();
  Status MeasureInput();
  void TryInstances();
  void TryInstancesOfBest();
  void MeasureSegments(std::vector<PlanAtSize> sizes, const std::vector<MeasuredPlan>& parts);
  std::vector<MeasuredPlan> MeasureInstances(std::vector<PlanCandidate> plans);
  void SearchCells();
  void SearchRounds();
  void SearchFrom(const RankedGraph& root);
  std::vector<RankedGraph> RewritesOf(const RankedGraph& root);
  void TryGraphs(const std::vector<RankedGraph>& graphs, CandidateOrigin origin);
  bool MeasureRound(std::vector<PlanCandidate> plans, const std::vector<RankedGraph>& graphs);
  StatusOr<std::vector<PlanTiming>> MeasureBesideInput(
      const std::vector<const PlanCandidate*>& candidates, Measurer::Effort effort);
  void Enqueue(RankedGraph graph, double speedup);
  bool MayRefine(const PlanCandidate& candidate);
  std::vector<KernelChoice> Refine(PlanCandidate* candidate);
  void EndBy(Nanos until);
  void OfferBest();
  void CompareFinalists(SearchResult* result);
  void TakeRanked(const std::vector<size_t>& finalists, SearchResult* result) const;
  void TakeWinners(const std::vector<size_t>& finalists, const std::vector<PlanTiming>& timings,
                   SearchResult* result) const;
  SearchResult InputResult() const;

  const SearchRequest& request_;
  Measurer& measurer_;
  RegionStore* const regions_;
  SearchRun run_;
  const RuleSet rules_;
  LearnedTimes times_;
  PairTimes pairs_;
  ThreadPool pool_;
  SearchSetting setting_;
  RewriteTrail trail_;

  PlanCandidate input_;
  RankedGraph input_graph_;
  StatusOr<PlanCandidate> unfused_ = Err(StatusCode::kCancelled, "unfused: not planned");
  PlanTiming input_timing_{.status = Err(StatusCode::kCancelled, "input: not measured")};
  std::vector<MeasuredPlan> measured_;
  absl::flat_hash_set<StructureHash> measured_graphs_;
  // Graphs to search from by (-speedup, digest): the fastest first.
  std::map<std::pair<double, Digest>, RankedGraph> queue_;
  double best_speedup_ = 1;
  int input_groups_ = 0, input_alternatives_ = 0;
  int cell_groups_ = 0;
  // The parts of each segment of the fastest plan of the input's own graph; empty: it runs as a
  // whole.
  std::vector<BatchParts> parts_;
  double parts_speedup_ = 1;  // Its speedup.
  std::vector<RegionUse> region_uses_;
  Nanos end_by_ = Nanos::max();  // As the Measurer was told.
  Nanos plan_takes_{0};          // Time to build and time one plan, in the last call.
  bool has_guess_ = false;       // The plan that a session guesses was timed beside the input.
  bool may_refine_ = true;       // Once false it stays false: a replay refines the same plans.
  StopReason stop_ = StopReason::kNone;
};

StatusOr<SearchResult> PlanSearch::Run() {
  AG_TRY(PlanInput());
  if (run_.Cancelled()) {
    stop_ = StopReason::kCancelled;
  } else {
    ChooseLayout();
    RefineInput();
    const Status measured = MeasureInput();
    if (measured.code() == StatusCode::kCancelled) {  // The final comparison may still measure it.
      stop_ = run_.Cancelled() ? StopReason::kCancelled : StopReason::kTime;
    } else {
      AG_TRY(measured);
      OfferBest();
      TryInstances();
      SearchCells();
      run_.at_step = [this] { OfferBest(); };
      SearchRounds();
      run_.at_step = nullptr;
      TryInstancesOfBest();
    }
  }
  SearchResult result = InputResult();
  CompareFinalists(&result);
  result.plans_refined = run_.counts.refined;
  result.stop_reason = stop_;
  result.warnings = run_.warnings();
  result.log = std::move(run_.log);
  return result;
}

// A stage that is cut here is cut only for the input; the rounds measure again.
Status PlanSearch::PlanInput() {
  const SearchLimits& limits = request_.options.limits;
  times_.BeginStage(limits.input_groups_max);
  EndBy(run_.PointAt(kInputCoverEnd));
  AG_TRY(FormMeasuredGroups(setting_.For(request_.input), times_));
  WantingTimes wanting(times_);
  AG_TRY(FormGroups(request_.input, request_.spec, request_.policy, wanting));
  const int covered = times_.asked();
  const bool is_cut = times_.Exhausted();
  EndBy(run_.PointAt(kInputAlternativesEnd));
  times_.MeasureWanted(std::min(kInputAlternativesMax, limits.input_alternatives_max));
  input_alternatives_ = times_.asked() - covered;
  // When alternatives were cut, the best cover of the measured ones still gets its time.
  if (!is_cut) times_.BeginStage(limits.input_groups_max - times_.asked());
  EndBy(run_.PointAt(kInputPlanEnd));
  AG_LET(input_, MakeOneStreamPlan(request_.input, setting_, {.allow_failed = true}));
  AG_LET(input_graph_, RankInput());
  unfused_ = MakeOneStreamPlan(request_.input, setting_, {.grouped = false, .allow_failed = true});
  input_groups_ = times_.asked();
  return OkStatus();
}

StatusOr<RankedGraph> PlanSearch::RankInput() const {
  AG_LET(const ScoredGraph scored, ScoreGraph(request_.input, setting_));
  return RankedGraph{request_.input, scored.has_failed ? kNoTimeNs : scored.estimate_ns};
}

// Whether there is time left to refine the candidate.
bool PlanSearch::MayRefine(const PlanCandidate& candidate) {
  const auto left_ns = static_cast<double>(run_.TimeLeft().count());
  if (run_.Over() || left_ns < kRefineRuns * candidate.makespan_ns) may_refine_ = false;
  if (run_.counts.refined >= request_.options.limits.refines_max) may_refine_ = false;
  return may_refine_;
}

// Returns the kernels that are faster inside the plan, and sets them in it.
std::vector<KernelChoice> PlanSearch::Refine(PlanCandidate* candidate) {
  if (!candidate->plan.segments.empty()) return {};  // They have graphs of their own.
  if (!MayRefine(*candidate)) return {};
  ++run_.counts.refined;
  run_.Report("refining kernels");
  StatusOr<std::vector<KernelChoice>> kernels = RefineCandidate(measurer_, candidate);
  if (kernels.ok()) return *std::move(kernels);
  const bool is_news = !run_.Cancelled() && kernels.status().code() != StatusCode::kUnimplemented;
  if (is_news) run_.Warn("refining kernels: " + Message(kernels.status()));
  return {};
}

// Times plans of the input beside the input's plan: one per layout, and the one that a session
// guesses, which the output must not be slower than. The fastest is the input's plan from here on;
// when it is of one layout, all plans use that layout.
void PlanSearch::ChooseLayout() {
  if (!MayRefine(input_)) return;
  auto plans = CloseLayoutPlans(request_.input, request_.spec, input_, [&](Layout layout) {
    setting_.layout = layout;
    return MakeOneStreamPlan(request_.input, setting_);
  });
  setting_.layout = std::nullopt;
  input_groups_ = times_.asked();
  if (plans.empty() || run_.Over()) return;
  std::vector<std::optional<Layout>> layouts;  // Of `trials`.
  std::vector<PlanCandidate> trials;
  for (auto& [layout, plan] : plans) {
    layouts.emplace_back(layout);
    trials.push_back(std::move(plan));
  }
  if (std::optional<PlanCandidate> guessed = GuessBeside(input_, setting_)) {
    layouts.emplace_back();
    trials.push_back(*std::move(guessed));
  }
  ++run_.counts.refined;
  run_.Report("measuring layouts");
  std::vector<const PlanCandidate*> pointers;
  for (const PlanCandidate& trial : trials) pointers.push_back(&trial);
  const StatusOr<std::vector<PlanTiming>> timings =
      MeasureAgainstInput(measurer_, input_, pointers, Measurer::Effort::kRanking);
  if (!timings.ok()) return;  // The next measurement meets the same error, and says so.
  has_guess_ = true;
  double best = 1;
  for (size_t i = 0; i < trials.size(); ++i) {
    const PlanTiming& timing = (*timings)[i + 1];
    if (!timing.status.ok() || timing.speedup <= best) continue;
    best = timing.speedup;
    setting_.layout = layouts[i];
    input_ = std::move(trials[i]);
  }
  if (!setting_.layout) return;
  StatusOr<RankedGraph> ranked = RankInput();
  if (ranked.ok()) input_graph_ = *std::move(ranked);
}

// Candidates share most groups with the input, so they begin with its refined kernels: both are
// compared at their best.
void PlanSearch::RefineInput() {
  for (const KernelChoice& choice : Refine(&input_)) {
    const Group& group = input_.plan.groups[static_cast<size_t>(choice.group)];
    times_.Prefer(ExtractGroup(input_.graph, group, request_.policy), choice.kernel);
  }
}

// Times the input, together with a plan of its graph on several streams and, where no layout was
// chosen, the plan that a session guesses: the likelier of the two is the input's from here on.
Status PlanSearch::MeasureInput() {
  std::vector<PlanCandidate> streams =
      MakeStreamsPlans(request_.input, setting_, input_.makespan_ns);
  input_groups_ = times_.asked();
  times_.BeginStage();
  std::vector<PlanCandidate> others;
  auto guessed = has_guess_ ? std::nullopt : GuessBeside(input_, setting_);
  const bool has_new = guessed.has_value();
  if (has_new) others.push_back(*std::move(guessed));
  std::ranges::move(streams, std::back_inserter(others));
  std::vector<const PlanCandidate*> candidates;
  for (const PlanCandidate& other : others) candidates.push_back(&other);
  run_.Report("measuring plans");
  EndBy(run_.search_end());
  AG_LET(std::vector<PlanTiming> timings,
         MeasureBesideInput(candidates, Measurer::Effort::kRanking));
  if (has_new && timings[1].status.ok() && timings[1].speedup > 1) {
    std::swap(input_, others[0]);
    MakeSecondTheBase(&timings);
  }
  input_timing_ = timings[0];
  measured_graphs_.insert(HashOfStructure(request_.input));
  double speedup = 1;
  for (size_t i = 0; i < others.size(); ++i) {
    const PlanTiming& timing = timings[i + 1];
    if (!timing.status.ok()) continue;
    speedup = std::max(speedup, timing.speedup);
    measured_.push_back({std::move(others[i]), timing});
  }
  Enqueue(input_graph_, speedup);
  run_.AddToHistory();
  return OkStatus();
}

// Measures the input and candidates in one call, and remembers what was measured.
StatusOr<std::vector<PlanTiming>> PlanSearch::MeasureBesideInput(
    const std::vector<const PlanCandidate*>& candidates, Measurer::Effort effort) {
  const Nanos begin = run_.Now();
  StatusOr<std::vector<PlanTiming>> timings =
      MeasureAgainstInput(measurer_, input_, candidates, effort);
  plan_takes_ = (run_.Now() - begin) / (candidates.size() + 1);
  const bool is_final = effort == Measurer::Effort::kVerdict;
  for (size_t i = 0; timings.ok() && i < timings->size(); ++i) {
    const PlanCandidate& candidate = i == 0 ? input_ : *candidates[i - 1];
    const bool is_known = i == 0 && !is_final && !run_.log.measured.empty();
    const bool is_cut = (*timings)[i].status.code() == StatusCode::kCancelled;
    if (is_known || is_cut) continue;
    run_.log.Add(
        MeasuredCandidate{.origin = candidate.origin,
                          .is_final = is_final,
                          .streams = UsedStreams(candidate.plan),
                          .rewrites = static_cast<int>(trail_.StepsTo(candidate.step).size()),
                          .estimates = candidate,
                          .timing = (*timings)[i]});
  }
  return timings;
}

void PlanSearch::Enqueue(RankedGraph graph, double speedup) {
  best_speedup_ = std::max(best_speedup_, speedup);
  run_.SetBestSpeedup(best_speedup_);
  const Digest digest = graph.graph.digest();
  queue_.emplace(std::pair{-speedup, digest}, std::move(graph));
}

// Times plans that run on parts of the batch beside the input's plan. The input's own graph alone:
// the size that is fastest there is tried again on the best graph (TryInstancesOfBest).
void PlanSearch::TryInstances() {
  const SearchLimits& limits = request_.options.limits;
  const bool is_ours = request_.options.method == SearchMethod::kOurs;
  if (!is_ours || limits.instance_sizes_max <= 0 || run_.Over()) return;
  const StatusOr<Samples> samples = FindSamples(request_.input);
  if (!samples.ok() || samples->batch < 2) return;
  const bool is_timed = run_.search_end() != Nanos::max();
  const auto left_ns = static_cast<double>(run_.TimeLeft().count());
  const Nanos end =
      is_timed ? run_.Now() + Nanos(static_cast<int64_t>(kInstancesShare * left_ns)) : Nanos::max();
  // All sizes together leave half of the groups for the rounds.
  const int groups_max = std::max(1, limits.groups_max / (2 * kInstanceSizesMax));
  std::vector<PlanCandidate> plans;
  for (const BatchParts& parts : PartsToTry(input_.plan, request_.spec, samples->batch)) {
    const bool is_over = run_.Over() || run_.Now() >= end;
    if (is_over || run_.counts.instance_sizes >= limits.instance_sizes_max) break;
    ++run_.counts.instance_sizes;
    times_.BeginStage(groups_max);
    auto plan = MakeInstancesPlan(input_, setting_, parts);
    if (plan.ok()) plans.push_back(*std::move(plan));
  }
  if (plans.empty()) return times_.BeginStage();
  times_.BeginStage(groups_max);
  MeasureSegments({{input_, input_timing_.latency.median_ns}}, MeasureInstances(std::move(plans)));
  times_.BeginStage();
}

// Measures plans in segments of the graph of `sizes`, to which `parts`, the measured plans of its
// parts, are added.
void PlanSearch::MeasureSegments(std::vector<PlanAtSize> sizes,
                                 const std::vector<MeasuredPlan>& parts) {
  for (const auto& [candidate, timing] : parts) {
    sizes.push_back({candidate, timing.latency.median_ns});
  }
  MeasureInstances(MakeSegmentsPlans(setting_, sizes));
}

// Makes the fastest rewritten graph's plan on parts of the batch, where the input's own gained by
// it.
void PlanSearch::TryInstancesOfBest() {
  if (parts_.empty() || run_.Over()) return;
  const MeasuredPlan* best = nullptr;
  for (const MeasuredPlan& measured : measured_) {
    if (measured.candidate.step == RewriteTrail::kInput || measured.timing.speedup <= 1) continue;
    if (best == nullptr || measured.timing.speedup > best->timing.speedup) best = &measured;
  }
  if (best == nullptr) return;
  times_.BeginStage();
  StatusOr<PlanCandidate> whole = MakeOneStreamPlan(best->candidate.graph, setting_);
  if (!whole.ok()) return;
  whole->step = best->candidate.step;
  whole->origin = best->candidate.origin;
  const double whole_ns = best->timing.latency.median_ns;
  const std::vector<BatchParts> all = parts_;
  std::vector<PlanCandidate> plans;
  for (const BatchParts& own : all) {
    if (own.instances == 1) continue;
    auto plan = MakeInstancesPlan(*whole, setting_, own);
    if (plan.ok()) plans.push_back(*std::move(plan));
  }
  const std::vector<MeasuredPlan> parts = MeasureInstances(std::move(plans));
  if (all.size() > 1) MeasureSegments({{*whole, whole_ns}}, parts);
}

// Measures plans on parts of the batch beside the input's, and returns those that could be.
std::vector<MeasuredPlan> PlanSearch::MeasureInstances(std::vector<PlanCandidate> plans) {
  if (plans.empty() || run_.Cancelled()) return {};
  run_.Report("measuring plans");
  EndBy(run_.search_end());
  std::vector<const PlanCandidate*> pointers;
  for (const PlanCandidate& plan : plans) pointers.push_back(&plan);
  const StatusOr<std::vector<PlanTiming>> timings =
      MeasureBesideInput(pointers, Measurer::Effort::kRanking);
  if (!timings.ok()) return {};  // The rounds meet the same error, and say so.
  std::vector<MeasuredPlan> measured;
  for (size_t i = 0; i < plans.size(); ++i) {
    const PlanTiming& timing = (*timings)[i + 1];
    if (!timing.status.ok()) continue;
    if (timing.speedup > parts_speedup_) {
      parts_speedup_ = timing.speedup;
      parts_.clear();
      for (const Segment& segment : plans[i].plan.segments) {
        parts_.push_back({segment.instances, plans[i].plan.beside});
      }
    }
    measured.push_back({std::move(plans[i]), timing});
  }
  measured_.insert(measured_.end(), measured.begin(), measured.end());
  return measured;
}

// Searches cells, and adds what comes of them to the graphs that rounds begin from.
void PlanSearch::SearchCells() {
  const SearchLimits& limits = request_.options.limits;
  const bool is_ours = request_.options.method == SearchMethod::kOurs;
  if (!is_ours || limits.cell_graphs_max <= 0 || run_.Over()) return;
  const int asked = times_.asked();
  times_.BeginStage(limits.cell_groups_max);
  const auto left_ns = static_cast<double>(run_.TimeLeft().count());
  const Nanos time(static_cast<int64_t>(kCellsShare * left_ns));
  CellSearch cells(setting_, trail_, regions_, time);
  EndBy(run_.Now() + time);
  const std::optional<RankedGraph> found = cells.Run();
  region_uses_ = cells.TakeUses();
  run_.round_share = std::max(1 - KnownShare(region_uses_), kKnownRoundShare);
  cell_groups_ = times_.asked() - asked;
  times_.BeginStage();
  EndBy(run_.search_end());
  if (found && !run_.Cancelled()) TryGraphs({*found}, {CandidateOrigin::Stage::kCells});
}

// AutoGraph's Algorithm 1, and an end for want of gains.
void PlanSearch::SearchRounds() {
  const bool may_be_stale = request_.options.method == SearchMethod::kOurs &&
                            request_.options.limits.stale_graphs_max > 0;
  const int stale_rounds_max =
      std::max(static_cast<int>(std::ceil(run_.round_share * kStaleRoundsMax)), kStaleRoundsMin);
  int stale_rounds = 0;
  while (!queue_.empty() && stop_ != StopReason::kUnavailable) {
    StopReason reason = run_.OverReason();
    if (reason == StopReason::kNone && may_be_stale && stale_rounds >= stale_rounds_max) {
      reason = StopReason::kStale;
    }
    if (reason == StopReason::kNone && run_.counts.rounds >= request_.options.limits.rounds_max) {
      reason = StopReason::kRounds;
    }
    if (reason != StopReason::kNone) {
      stop_ = reason;
      return;
    }
    ++run_.counts.rounds;
    const auto done = [&] { return std::pair(run_.counts.expansions, run_.counts.graphs); };
    const auto before = done();
    const double best_before = best_speedup_;
    BeginRound();
    run_.patience = std::pow(kPatienceFactor, stale_rounds);
    SearchFrom(queue_.extract(queue_.begin()).mapped());
    // It was stopped before it expanded or scored a graph, so it does not count as a round.
    if (run_.Over() && done() == before) --run_.counts.rounds;
    stale_rounds = best_speedup_ > kRoundGain * best_before ? 0 : stale_rounds + 1;
    const bool has_reason = stop_ == StopReason::kUnavailable || stop_ == StopReason::kCancelled;
    if (!has_reason && run_.TimeUp()) {
      stop_ = StopReason::kTime;
      return;
    }
  }
}

// Reserves time for timing the plans of this round.
void PlanSearch::BeginRound() {
  if (run_.search_end() == Nanos::max()) return;
  const auto left = std::max(run_.search_end() - run_.Now(), Nanos{0});
  const int plans = request_.options.limits.candidates_max + 1;
  const Nanos kept =
      std::min(Nanos(static_cast<int64_t>(kPlansShare * static_cast<double>(left.count()))),
               plan_takes_ * plans);
  run_.EndAt(run_.search_end() - kept);
  EndBy(run_.search_end() - kept);
}

// Keeps the plans, best first, that can be timed until the search's end, and at least one.
void PlanSearch::KeepWhatFits(std::vector<PlanCandidate>* plans) {
  const int64_t allowed = request_.options.limits.plans_total_max - run_.counts.plans_timed;
  if (static_cast<int64_t>(plans->size()) > allowed) {
    plans->resize(static_cast<size_t>(std::max<int64_t>(allowed, 0)));
  }
  if (run_.search_end() == Nanos::max() || plan_takes_ <= Nanos{0}) return;
  const int64_t fit = std::max<int64_t>((run_.search_end() - run_.Now()) / plan_takes_ - 1, 1);
  if (static_cast<int64_t>(plans->size()) <= fit) return;
  plans->resize(static_cast<size_t>(fit));
  run_.EndAt(Nanos::min());  // A round that is cut by time is the last.
}

void PlanSearch::SearchFrom(const RankedGraph& root) {
  const std::vector<RankedGraph> graphs = RewritesOf(root);
  if (!run_.Cancelled()) TryGraphs(graphs, {CandidateOrigin::Stage::kRound, run_.counts.rounds});
}

// Returns the best graphs that the method's strategies find, the best first.
std::vector<RankedGraph> PlanSearch::RewritesOf(const RankedGraph& root) {
  const int graphs_max = request_.options.limits.graphs_max;
  const int end = run_.counts.graphs + static_cast<int>(std::ceil(run_.round_share * graphs_max));
  std::vector<RankedGraph> graphs;
  const auto search = [&](auto strategy, const auto& from) {
    graphs =
        BestOf(std::move(graphs), strategy.Run(from, measured_graphs_, end - run_.counts.graphs),
               request_.options.limits.candidates_max);
    if (strategy.stop() != StopReason::kNone) stop_ = strategy.stop();
    return strategy.stop();
  };
  const SearchMethod method = request_.options.method;
  if (method == SearchMethod::kPaper || method == SearchMethod::kPaperWithoutDp) {
    search(RegionSearch(setting_, trail_), root);
  } else if (search(Backtracking(setting_, trail_), root) == StopReason::kNone) {
    std::vector<RankedGraph> roots = {root};
    if (run_.counts.rounds == 1) roots.push_back(input_graph_);
    search(BeamSearch(setting_, trail_), roots);
  }
  return graphs;
}

// Measures the graphs' plans, beside the input, and adds what is not slower than the best to the
// queue.
void PlanSearch::TryGraphs(const std::vector<RankedGraph>& graphs, CandidateOrigin origin) {
  for (const RankedGraph& one : graphs) measured_graphs_.insert(HashOfStructure(one.graph));
  std::vector<PlanCandidate> plans = MakePlansOf(graphs, origin, setting_);
  if (plans.empty()) return;
  run_.Report("measuring plans");
  if (MeasureRound(std::move(plans), graphs)) return;
  stop_ = run_.Cancelled() ? StopReason::kCancelled : StopReason::kUnavailable;
}

// Returns false when no plan could be measured. Leaves out candidates without a timing.
bool PlanSearch::MeasureRound(std::vector<PlanCandidate> plans,
                              const std::vector<RankedGraph>& graphs) {
  KeepWhatFits(&plans);
  if (plans.empty()) return true;
  std::vector<const PlanCandidate*> pointers;
  for (const PlanCandidate& plan : plans) pointers.push_back(&plan);
  EndBy(run_.search_end());
  const StatusOr<std::vector<PlanTiming>> timings =
      MeasureBesideInput(pointers, Measurer::Effort::kRanking);
  if (!timings.ok()) {
    const bool is_cut = timings.status().code() == StatusCode::kCancelled;
    if (!is_cut) run_.Warn("measuring plans: " + Message(timings.status()));
    return is_cut && run_.TimeUp();  // Otherwise it was cancelled, or the device is lost.
  }
  std::map<int, double> speedups;  // The speedup of each graph's best plan, by step.
  for (size_t i = 0; i < plans.size(); ++i) {
    const PlanTiming& timing = (*timings)[i + 1];
    // No time was left for it and all later ones.
    if (timing.status.code() == StatusCode::kCancelled) {
      run_.EndAt(Nanos::min());
      break;
    }
    ++run_.counts.plans_timed;
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
  run_.AddToHistory();
  return true;
}

// Returns the answer for the case that nothing beats the input.
SearchResult PlanSearch::InputResult() const {
  SearchResult result;
  result.graph = request_.input;
  result.plan = input_.plan;
  result.input_plan = input_.plan;
  result.input_timing = input_timing_;
  if (unfused_.ok()) result.unfused_plan = unfused_->plan;
  result.unfused_timing.status =
      unfused_.ok() ? Err(StatusCode::kCancelled, "unfused: not measured") : unfused_.status();
  result.timing = input_timing_;
  result.input_estimate_ns = input_.makespan_ns < kNoTimeNs ? input_.makespan_ns : 0;
  result.estimate_ns = result.input_estimate_ns;
  result.rounds = run_.counts.rounds;
  result.expansions = run_.counts.expansions;
  result.graphs = run_.counts.graphs;
  result.candidates = run_.counts.candidates;
  result.plans_timed = run_.counts.plans_timed;
  result.best_speedup = best_speedup_;
  result.input_groups = input_groups_;
  result.input_alternatives = input_alternatives_;
  result.cell_graphs = run_.counts.cell_graphs;
  result.cell_groups = cell_groups_;
  result.cell_takes = run_.counts.cell_takes;
  result.instance_sizes = run_.counts.instance_sizes;
  result.regions = region_uses_;
  result.groups_measured = times_.measured();
  result.groups_failed = times_.failed();
  result.groups_asked = times_.asked();
  result.pairs_measured = pairs_.measured();
  result.pairs_failed = pairs_.failed();
  result.overlap = pairs_.overlap();
  return result;
}

void PlanSearch::EndBy(Nanos until) {
  end_by_ = until;
  measurer_.EndBy(until);
}

void PlanSearch::OfferBest() {
  if (!request_.wants_best || !request_.on_best || !request_.wants_best()) return;
  SearchResult result = InputResult();
  TakeRanked(ChooseFinalists(measured_), &result);
  result.stop_reason = StopReason::kGoesOn;
  result.warnings = run_.warnings();
  result.log = run_.log;
  request_.on_best(result);
  measurer_.EndBy(end_by_);
}

void PlanSearch::CompareFinalists(SearchResult* result) {
  const std::vector<size_t> finalists = ChooseFinalists(measured_);
  if (run_.Cancelled() && finalists.empty()) return;
  const auto plans = static_cast<int64_t>(finalists.size() + 1);
  const bool is_short = run_.comparison_end() - run_.Now() < plans * plan_takes_;
  if (is_short && !finalists.empty() && !run_.Cancelled()) return TakeRanked(finalists, result);
  for (const size_t i : finalists) Refine(&measured_[i].candidate);
  std::vector<const PlanCandidate*> candidates;
  for (const size_t i : finalists) candidates.push_back(&measured_[i].candidate);
  // The unfused plan is only information, so it is the first to be left out.
  const bool has_time = run_.comparison_end() - run_.Now() > 2 * (plans + 1) * plan_takes_;
  const bool has_unfused = unfused_.ok() && !run_.Cancelled() && has_time;
  if (has_unfused) candidates.push_back(&*unfused_);
  run_.Report("measuring plans");
  EndBy(run_.comparison_end());
  StatusOr<std::vector<PlanTiming>> timings =
      MeasureBesideInput(candidates, Measurer::Effort::kVerdict);
  const bool is_cut = timings.status().code() == StatusCode::kCancelled && !run_.Cancelled();
  if (is_cut && !finalists.empty()) return TakeRanked(finalists, result);
  if (!timings.ok()) {
    run_.Warn(fmt::format("final comparison: {}", Message(timings.status())));
    if (stop_ != StopReason::kCancelled) stop_ = StopReason::kUnavailable;
    return;
  }
  run_.AddToHistory();
  result->input_timing = timings->front();
  timings->erase(timings->begin());
  if (has_unfused) {
    result->unfused_timing = timings->back();
    timings->pop_back();
  }
  for (const PlanTiming& timing : *timings) {
    if (!timing.status.ok()) run_.Warn("final comparison: " + Message(timing.status));
  }
  TakeWinners(finalists, *timings, result);
}

// For a model whose plans take too long to be timed once more, and before the end: what ranked them
// decides, since what is published is timed as a file.
void PlanSearch::TakeRanked(const std::vector<size_t>& finalists, SearchResult* result) const {
  std::vector<PlanTiming> timings;
  for (const size_t i : finalists) timings.push_back(measured_[i].timing);
  TakeWinners(finalists, timings, result);
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
    std::vector<RewriteStep> steps = trail_.Steps(candidate.step);
    for (RewriteStep& step : steps) {  // The caller's rules outlive the search, rules_ does not.
      step.rewrite.rule = request_.rules->Find(step.rewrite.rule->name);
    }
    return FoundPlan{candidate, trail_.Path(candidate.step), std::move(steps), timings[winner],
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

StatusOr<std::vector<KernelChoice>> Measurer::RefinePlan(const Candidate&) {
  return std::vector<KernelChoice>();
}

SearchState SearchStateOf(StopReason stop_reason, int rounds, int cell_graphs) {
  if (rounds <= 0 && cell_graphs <= 0) return SearchState::kNotSearched;
  switch (stop_reason) {
    case StopReason::kNone:
    case StopReason::kRounds:
    case StopReason::kExpansions:
    case StopReason::kGraphs:
    case StopReason::kStale:
    case StopReason::kGroups:
      return SearchState::kComplete;
    case StopReason::kTime:
    case StopReason::kUnavailable:
    case StopReason::kCancelled:
    case StopReason::kGoesOn:
      return SearchState::kStopped;
  }
  AG_CHECK(false);
}

StatusOr<SearchResult> FindPlan(const SearchRequest& request, Measurer& measurer, Clock& clock,
                                RegionStore* regions) {
  return PlanSearch(request, measurer, clock, regions).Run();
}

SearchLimits ReplayLimits(const SearchLimits& used, const SearchResult& result) {
  SearchLimits limits = used;
  limits.rounds_max = result.rounds;
  limits.expansions_total_max = result.expansions;
  limits.graphs_total_max = result.graphs;
  if (result.expansions == 0) limits.expansions_max = 0;
  if (result.graphs == 0) limits.graphs_max = 0;
  limits.plans_total_max = result.plans_timed;
  limits.input_groups_max = result.input_groups;
  limits.input_alternatives_max = result.input_alternatives;
  limits.cell_graphs_max = result.cell_graphs;
  limits.cell_groups_max = result.cell_groups;
  limits.cell_takes_max = result.cell_takes;
  limits.instance_sizes_max = result.instance_sizes;
  limits.groups_max = result.groups_asked;
  limits.pairs_max = result.pairs_measured + result.pairs_failed;
  limits.refines_max = result.plans_refined;
  limits.time_max = Nanos::max();
  return limits;
}

}  // namespace ag
