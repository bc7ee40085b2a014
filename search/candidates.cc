#include "search/candidates.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "graph/batch/part_of_batch.h"
#include "plan/format/plan_codec.h"
#include "plan/schedule/segmenting.h"
#include "plan/segments.h"

namespace ag {
namespace {

PlanCandidate CandidateOf(const Graph& graph, const SearchSetting& setting, TimedPlan made) {
  made.plan.environment = setting.request.environment;
  const PlanEstimates estimates = EstimatesOf(graph, made, setting.request.options.alpha);
  return {{graph, std::move(made.plan)}, estimates};
}

// Times pairs of groups that the plan would run beside each other. Returns true when that changed
// the overlap, and so the makespans of all plans.
bool LearnPairs(const Graph& graph, const TimedPlan& plan, const SearchSetting& setting) {
  if (!setting.pairs.CanLearn() || setting.run.Over() || !plan.unmeasured.empty()) return false;
  setting.run.Report("measuring pairs of groups");
  const bool changed = setting.pairs.Learn(graph, plan);
  const Status& failure = setting.pairs.failure();
  const bool says_nothing = failure.ok() || failure.code() == StatusCode::kUnimplemented;
  if (!says_nothing) setting.run.Warn("two groups together: " + Message(failure));
  return changed;
}

// Numbers of streams whose streams have the same cores, so that one choice of groups serves all.
struct StreamCounts {
  int min = 0, max = 0;
};

// Returns 2 to StreamsMax streams in such runs.
std::vector<StreamCounts> StreamCountsOf(const SearchRequest& request) {
  std::vector<StreamCounts> runs;
  for (int streams = 2; streams <= StreamsMax(request); ++streams) {
    const bool goes_on = !runs.empty() && StreamCores(request.spec, runs.back().max) ==
                                              StreamCores(request.spec, streams);
    if (!goes_on) runs.push_back({streams, streams});
    runs.back().max = streams;
  }
  return runs;
}

// The plans of one graph on 2 to StreamsMax streams whose simulated end is before a given time.
class StreamsTrials {
 public:
  StreamsTrials(const Graph& graph, const SearchSetting& setting, double below_ns)
      : graph_(graph),
        setting_(setting),
        below_ns_(below_ns),
        counts_(StreamCountsOf(setting.request)),
        plans_(counts_.size()) {
    MakeAll();
  }

  void MakeAll() {
    setting_.pool.Each(static_cast<int>(plans_.size()), [this](int i, int) { Make(i); });
  }

  // Makes the plans for the same cores as those of `plan`. REQUIRES: `plan` is in Ranked().
  void MakeAgain(const TimedPlan& plan) {
    for (size_t i = 0; i < plans_.size(); ++i) {
      const auto is_it = [&](const TimedPlan& other) { return &other == &plan; };
      if (std::ranges::any_of(plans_[i], is_it)) return Make(i);
    }
  }

  // Returns all plans, the earliest simulated end first, of equal ones the fewest streams.
  std::vector<const TimedPlan*> Ranked() const {
    std::vector<const TimedPlan*> ranked;
    for (const std::vector<TimedPlan>& plans : plans_) {
      for (const TimedPlan& plan : plans) ranked.push_back(&plan);
    }
    std::ranges::stable_sort(ranked, {}, &TimedPlan::makespan_ns);
    return ranked;
  }

  std::vector<PlanCandidate> Best() const {
    std::vector<PlanCandidate> best;
    const std::vector<const TimedPlan*> ranked = Ranked();
    for (const TimedPlan* plan : ranked) {
      const TimedPlan& first = *ranked.front();
      const bool is_rival = plan->scheduler != first.scheduler && plan->unmeasured.empty() &&
                            plan->makespan_ns <= kCloseSchedule * first.makespan_ns;
      if (plan == &first || is_rival) best.push_back(CandidateOf(graph_, setting_, *plan));
      if (best.size() == kStreamsPlansMax) break;
    }
    return best;
  }

 private:
  void Make(size_t i) {
    const PlanRequest request =
        setting_.For(graph_, {.mixed_layouts = true}, counts_[i].max, counts_[i].min);
    StatusOr<std::vector<TimedPlan>> made =
        MakeTimedPlans(request, setting_.times, kStreamsPlansMax);
    plans_[i] = made.ok() ? *std::move(made) : std::vector<TimedPlan>();
    std::erase_if(plans_[i], [&](const TimedPlan& plan) { return plan.makespan_ns >= below_ns_; });
  }

  const Graph& graph_;
  const SearchSetting& setting_;
  const double below_ns_;
  const std::vector<StreamCounts> counts_;
  std::vector<std::vector<TimedPlan>> plans_;  // By entry of counts_.
};

}  // namespace

StatusOr<PlanCandidate> MakeOneStreamPlan(const Graph& graph, const SearchSetting& setting,
                                          const OneStreamOptions& options) {
  const PlanRequest request = setting.For(
      graph, {.grouped = options.grouped, .cores = options.cores, .mixed_layouts = true});
  AG_LET(TimedPlan made, options.grouped ? MakeMeasuredPlan(request, setting.times)
                                         : MakeTimedPlan(request, setting.times));
  if (!options.allow_failed) AG_TRY(made.failure);
  return CandidateOf(graph, setting, std::move(made));
}

StatusOr<PlanCandidate> MakeInstancesPlan(const PlanCandidate& whole, const SearchSetting& setting,
                                          const BatchParts& parts) {
  AG_LET(const Graph part, PartOfBatch(whole.graph, parts.instances));
  const int cores = CoresBeside(setting.request.spec, parts.beside);
  AG_LET(PlanCandidate made, MakeOneStreamPlan(part, setting, {.cores = cores}));
  made.graph = whole.graph;
  made.step = whole.step;
  made.origin = whole.origin;
  made.plan = InstancesOf(std::move(made.plan), whole.graph, parts.instances, parts.beside);
  for (double* const ns :
       {&made.mixed_ns, &made.sum_ns, &made.critical_path_ns, &made.makespan_ns}) {
    *ns *= static_cast<double>(parts.instances) / parts.beside;
  }
  return made;
}

std::vector<PlanCandidate> MakeSegmentsPlans(const SearchSetting& setting,
                                             std::span<const PlanAtSize> plans) {
  const PlanCandidate& whole = plans[0].candidate;
  const Graph& graph = whole.graph;
  std::vector<PartPlan> at_sizes;
  for (const auto& [candidate, whole_ns] : plans) {
    const Plan& plan = *PlansIn(candidate.plan)[0];
    const std::vector<Graph> graphs = GraphsIn(graph, candidate.plan);
    const bool is_beside = candidate.plan.beside > 1;
    if (graphs.size() != 1 || plan.streams.size() != 1 || is_beside) continue;
    at_sizes.push_back({SizesOf(candidate.plan).instances, plan, {}});
    for (const Group& group : plan.groups) {
      const bool is_view = group.pattern == kViewPattern;
      const auto time = [&] {
        return setting.times.Time(ExtractGroup(graphs[0], group, plan.policy));
      };
      at_sizes.back().ns.push_back(is_view ? 0 : time().ns);
    }
    if (whole_ns > 0) ScaleTo(whole_ns, &at_sizes.back());
  }
  std::vector<PlanCandidate> made;
  for (Segmentation& found : ChooseSegments(graph, at_sizes)) {
    PlanEstimates sum;
    const auto make = [&](const Graph& piece, int32_t instances) -> StatusOr<Plan> {
      AG_LET(PlanCandidate one, MakeOneStreamPlan(piece, setting));
      sum.mixed_ns += instances * one.mixed_ns;
      sum.sum_ns += instances * one.sum_ns;
      sum.critical_path_ns += instances * one.critical_path_ns;
      sum.makespan_ns += instances * one.makespan_ns;
      sum.groups += one.groups;
      return std::move(one.plan);
    };
    StatusOr<Plan> plan =
        MakeSegmentsPlan(graph, setting.request.spec, std::move(found.segments), make);
    if (!plan.ok()) continue;
    made.push_back({{graph, *std::move(plan)}, sum, whole.step, whole.origin});
  }
  return made;
}

std::optional<PlanCandidate> GuessBeside(const PlanCandidate& candidate,
                                         const SearchSetting& setting) {
  const Graph& graph = candidate.graph;
  const int streams = StreamsMax(setting.request);
  auto made = GuessPlan(setting.For(graph, {.mixed_layouts = true}, streams, 1));
  if (!made.ok()) return std::nullopt;
  PlanCandidate guessed = CandidateOf(graph, setting, *std::move(made));
  if (EncodePlan(guessed.plan) == EncodePlan(candidate.plan)) return std::nullopt;
  return guessed;
}

std::vector<PlanCandidate> MakeStreamsPlans(const Graph& graph, const SearchSetting& setting,
                                            double below_ns) {
  StreamsTrials trials(graph, setting, below_ns);
  const int turns_max = kCoverTurnsMax * (StreamsMax(setting.request) - 1);
  // Uses estimates first, then measures the leader's groups until the leader has only measured
  // groups.
  for (int turn = 0; !trials.Ranked().empty(); ++turn) {
    const TimedPlan& leader = *trials.Ranked().front();
    const bool may_measure = turn < turns_max && !setting.times.Exhausted();
    if (!leader.unmeasured.empty() && may_measure) {
      for (const GroupProblem& problem : leader.unmeasured) setting.times.Want(problem);
      setting.times.MeasureWanted();
      trials.MakeAgain(leader);
    } else if (LearnPairs(graph, leader, setting)) {
      trials.MakeAll();
    } else {
      break;
    }
  }
  return trials.Best();
}

StatusOr<std::vector<PlanCandidate>> MakePlans(const Graph& graph, const SearchSetting& setting) {
  std::vector<PlanCandidate> plans;
  AG_LET(PlanCandidate one, MakeOneStreamPlan(graph, setting));
  plans.push_back(std::move(one));
  std::ranges::move(MakeStreamsPlans(graph, setting, plans[0].makespan_ns),
                    std::back_inserter(plans));
  return plans;
}

std::vector<PlanCandidate> MakePlansOf(const std::vector<RankedGraph>& graphs,
                                       CandidateOrigin origin, const SearchSetting& setting) {
  std::vector<PlanCandidate> all;
  std::set<Digest> seen;
  for (const RankedGraph& graph : graphs) {
    StatusOr<std::vector<PlanCandidate>> plans = MakePlans(graph.graph, setting);
    if (!plans.ok()) {
      setting.run.Warn(fmt::format("candidate: {}", Message(plans.status())));
      continue;
    }
    const bool is_ours = setting.request.options.method == SearchMethod::kOurs;
    if (is_ours && !seen.insert(DigestOfGroups(plans->front())).second) continue;
    ++setting.run.counts.candidates;
    for (PlanCandidate& plan : *plans) {
      plan.step = graph.step;
      plan.origin = origin;
      all.push_back(std::move(plan));
    }
  }
  return all;
}

Digest DigestOfGroups(const Candidate& candidate) {
  std::vector<std::string> groups;
  for (const Group& group : candidate.plan.groups) {
    const GroupProblem problem = ExtractGroup(candidate.graph, group, candidate.plan.policy);
    groups.push_back(Sha256(EncodeGroupProblem(problem)).Hex());
  }
  std::ranges::sort(groups);
  return Sha256(fmt::format("{}", fmt::join(groups, "\n")));
}

int UsedStreams(const Plan& plan) {
  const auto has_launches = [](const Stream& stream) { return !stream.launches.empty(); };
  int64_t most = 0;
  for (const Plan* const own : PlansIn(plan)) {
    most = std::max<int64_t>(most, std::ranges::count_if(own->streams, has_launches));
  }
  return static_cast<int>(most);
}

}  // namespace ag
