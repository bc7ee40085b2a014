#include "runtime/tune_plan.h"

#include <algorithm>

#include "device/profile/profile.h"
#include "device/profile/refine_kernels.h"
#include "device/profile/timing_data.h"
#include "graph/batch/part_of_batch.h"
#include "graph/batch/samples.h"
#include "plan/schedule/close_layouts.h"
#include "plan/schedule/planner.h"
#include "plan/schedule/schedule_problem.h"
#include "plan/schedule/segmenting.h"
#include "plan/segments.h"

namespace ag {
namespace {

// A third of the time that the service spends on a group, whose result it stores.
constexpr Nanos kGroupTime{10'000'000};

// A plan on more streams is tried when its simulation takes less than this share of the time of the
// best plan on fewer. Only the last trials, which promise most, are timed whole.
constexpr double kPromise = 0.995;
constexpr size_t kTrialsMax = 2;
constexpr int kTrialBlocksMax = 18;
constexpr Nanos kTrialsTime{5'000'000'000};

// Measured times, with the assumption that a group on few cores is as fast as on all. A plan that
// promises nothing even with these times needs no measurement.
class HopefulTimes : public GroupTimes {
 public:
  HopefulTimes(const LearnedTimes& known, const DeviceSpec& spec) : known_(known), spec_(spec) {}
  GroupTime Time(const GroupProblem& problem) override {
    if (problem.pattern == kViewPattern) return {};
    GroupProblem wide = problem;
    wide.cores = 0;
    for (const GroupProblem* asked : {&problem, static_cast<const GroupProblem*>(&wide)}) {
      const std::optional<Measurement> found = known_.MeasurementOf(*asked);
      if (found) {
        return {.ns = found->latency.median_ns, .active_cores = found->active_cores};
      }
    }
    const GroupEstimate estimate = EstimateGroup(wide, spec_);
    return {.ns = estimate.ns, .active_cores = estimate.active_cores};
  }

 private:
  const LearnedTimes& known_;
  const DeviceSpec& spec_;
};

GroupingOptions GroupingOf(const TuningOptions& options, std::optional<Layout> layout) {
  return {.grouped = options.grouped,
          .pieces = options.pieces,
          .without = options.without,
          .cores = options.cores,
          .layout = layout,
          .mixed_layouts = true};
}

class Tuning {
 public:
  Tuning(const Graph& graph, Device& device, TuningOptions options)
      : graph_(graph),
        device_(device),
        options_(std::move(options)),
        times_(device.spec(), MeasureOn(device, {.group_time = kGroupTime}, RealClock()),
               {.at_once = true}) {}

  StatusOr<Plan> Run();
  // Returns the plan on one stream that Run found, and its groups' times. REQUIRES: Run succeeded.
  PartPlan OneStream(int32_t instances) const { return {instances, one_.plan, NsOf(one_.times)}; }
  // Returns the plan of a piece of the graph, on one stream, by the times and layouts of the graph.
  StatusOr<Plan> MakePiece(const Graph& piece);
  // Returns 0, unless another one of the plans is FASTER than plans[0]. Where none is, returns
  // `equal`, when given, if that plan has a speedup over plans[0], sure or not.
  StatusOr<size_t> Fastest(const std::vector<Plan>& plans, size_t equal = 0);
  // Returns the plan with the largest speedup over plans[0], sure or not.
  StatusOr<size_t> Likeliest(const std::vector<Plan>& plans);
  StatusOr<std::vector<PlanTiming>> TimeWhole(const std::vector<Plan>& plans);

 private:
  StatusOr<TimedPlan> Try(GroupTimes& times, int streams) const {
    return Try(graph_, times, streams);
  }
  StatusOr<TimedPlan> Try(const Graph& graph, GroupTimes& times, int streams) const;
  // Of the first plan.
  int Streams() const { return options_.cores > 0 ? 1 : std::max(1, options_.streams); }
  Status ChooseLayout(TimedPlan* one);
  StatusOr<std::vector<TimedPlan>> PromisingTrials(double one_stream_ns);
  StatusOr<Plan> Refined(Plan plan);

  const Graph& graph_;
  Device& device_;
  const TuningOptions options_;
  std::optional<Layout> layout_ = options_.layout;  // Of all plans from here on.
  LearnedTimes times_;
  const TimingData weights_{};
  TimedPlan one_;  // On one stream.
};

StatusOr<TimedPlan> Tuning::Try(const Graph& graph, GroupTimes& times, int streams) const {
  const GroupingOptions grouping = GroupingOf(options_, layout_);
  return MakeTimedPlan({graph, device_.spec(), Policy(), grouping, streams}, times);
}

StatusOr<Plan> Tuning::MakePiece(const Graph& piece) {
  AG_LET(TimedPlan made, Try(piece, times_, 1));
  return std::move(made.plan);
}

// Times plans of one layout beside `one`, whose layouts may change along the graph. When one of
// them is FASTER, it takes the place of `one` and all later plans have its layout.
Status Tuning::ChooseLayout(TimedPlan* one) {
  if (layout_) return OkStatus();
  auto trials = CloseLayoutPlans(graph_, device_.spec(), *one, [&](Layout layout) {
    layout_ = layout;
    return Try(times_, Streams());
  });
  layout_ = std::nullopt;
  std::vector<Plan> plans = {one->plan};
  for (const auto& [layout, trial] : trials) plans.push_back(trial.plan);
  AG_LET(const size_t best, Fastest(plans));
  if (best == 0) return OkStatus();
  layout_ = trials[best - 1].first;
  *one = std::move(trials[best - 1].second);
  return OkStatus();
}

StatusOr<std::vector<TimedPlan>> Tuning::PromisingTrials(double one_stream_ns) {
  const DeviceSpec& spec = device_.spec();
  HopefulTimes hopeful(times_, spec);
  double bar_ns = kPromise * one_stream_ns;
  std::vector<TimedPlan> trials;
  for (int streams = 2; streams <= std::min(spec.streams_max, spec.cores); ++streams) {
    AG_LET(const TimedPlan hope, Try(hopeful, streams));
    if (hope.makespan_ns >= bar_ns) continue;
    AG_LET(TimedPlan trial, Try(times_, streams));
    if (trial.makespan_ns < bar_ns) {
      bar_ns = kPromise * trial.makespan_ns;
      trials.push_back(std::move(trial));
    } else if (spec.stream_cores == 0) {
      break;  // Each number of streams has its own group times, and measuring more is not worth it.
    }
  }
  if (trials.size() > kTrialsMax) trials.erase(trials.begin(), trials.end() - kTrialsMax);
  return trials;
}

StatusOr<Plan> Tuning::Refined(Plan plan) {
  const auto measured = [&](const GroupProblem& group) { return times_.MeasurementOf(group); };
  const std::vector<KernelChoice> rivals = CloseRivals(graph_, plan, measured);
  AG_LET(const std::vector<KernelChoice> faster,
         RefineKernels(graph_, plan, rivals, device_, {.weights = &weights_}));
  return WithKernels(std::move(plan), faster);
}

StatusOr<std::vector<PlanTiming>> Tuning::TimeWhole(const std::vector<Plan>& plans) {
  std::vector<std::unique_ptr<Executable>> built;
  std::vector<PlanToTime> to_time;
  for (const Plan& plan : plans) {
    AG_LET(std::unique_ptr<Executable> executable, device_.Build({graph_, plan, weights_}));
    PlanToTime one{.executable = executable.get()};
    weights_.FillBuffers(graph_, &one.inputs, &one.outputs);
    built.push_back(std::move(executable));
    to_time.push_back(std::move(one));
  }
  const ProfileOptions options{.blocks_max = kTrialBlocksMax, .comparison_time = kTrialsTime};
  return ProfilePlans(device_, std::move(to_time), options, RealClock());
}

StatusOr<size_t> Tuning::Likeliest(const std::vector<Plan>& plans) {
  AG_LET(const std::vector<PlanTiming> timings, TimeWhole(plans));
  size_t best = 0;
  for (size_t i = 1; i < timings.size(); ++i) {
    const double bar = best == 0 ? 1 : timings[best].speedup;
    if (timings[i].status.ok() && timings[i].speedup > bar) best = i;
  }
  return best;
}

StatusOr<size_t> Tuning::Fastest(const std::vector<Plan>& plans, size_t equal) {
  if (plans.size() == 1) return 0;
  AG_LET(const std::vector<PlanTiming> timings, TimeWhole(plans));
  size_t best = 0;
  for (size_t i = 1; i < timings.size(); ++i) {
    const PlanTiming& timing = timings[i];
    const bool is_faster = timing.status.ok() && timing.verdict == Verdict::kFaster;
    const double bar = best == 0 ? 1 : timings[best].speedup;
    if (is_faster && timing.speedup > bar) best = i;
  }
  const bool is_likelier = timings[equal].status.ok() && timings[equal].speedup > 1;
  return best == 0 && is_likelier ? equal : best;
}

StatusOr<Plan> Tuning::Run() {
  std::optional<Plan> guessed;
  if (options_.grouped) {
    AG_LET(guessed, GuessedPlan(graph_, device_.spec(), options_));
  }
  AG_LET(one_, Try(times_, Streams()));
  if (options_.grouped) AG_TRY(ChooseLayout(&one_));
  AG_LET(Plan refined, Refined(one_.plan));
  for (size_t g = 0; g < refined.groups.size(); ++g) {
    const Group& group = refined.groups[g];
    if (group.kernel == one_.plan.groups[g].kernel) continue;
    times_.Prefer(ExtractGroup(graph_, group, refined.policy), group.kernel);
  }
  one_.plan = refined;
  std::vector<Plan> plans;
  plans.push_back(std::move(refined));
  if (options_.streams == 0 && options_.grouped && options_.cores == 0) {
    AG_LET(std::vector<TimedPlan> trials, PromisingTrials(one_.makespan_ns));
    for (TimedPlan& trial : trials) {
      AG_LET(Plan plan, Refined(std::move(trial.plan)));
      plans.push_back(std::move(plan));
    }
  }
  // Groups alone are not groups in a plan: what measures nothing may have guessed better. Neither
  // of the two has to prove itself, or tuning would keep a plan that is slower than no tuning by as
  // much as a noisy machine hides.
  size_t equal = 0;
  if (guessed) {
    equal = plans.size();
    plans.push_back(*std::move(guessed));
  }
  AG_LET(const size_t best, Fastest(plans, equal));
  return std::move(plans[best]);
}

// The tuning of a batch: of the whole, and of equal parts one after the other.
class BatchTuning {
 public:
  BatchTuning(const Graph& graph, Device& device, const TuningOptions& options)
      : graph_(graph), device_(device), options_(options), whole_(graph, device, options) {}

  StatusOr<std::vector<Plan>> Plans() {
    std::vector<Plan> plans(1);
    AG_LET(plans[0], whole_.Run());
    if (options_.grouped && options_.instances) {
      AG_TRY(AddParts(&plans));
      AG_TRY(AddSegments(&plans));
    }
    return plans;
  }

  StatusOr<Plan> Run() {
    AG_LET(std::vector<Plan> plans, Plans());
    if (plans.size() == 1) return std::move(plans[0]);
    // All of them share the time of one comparison, which may not be enough to be sure of one.
    AG_LET(const size_t likely, whole_.Likeliest(plans));
    plans = {plans[0], plans[likely]};
    AG_LET(const size_t best, whole_.Fastest(plans));
    return std::move(plans[best]);
  }

 private:
  struct PartTuning {
    PartTuning(Graph made, BatchParts of, Device& device, const TuningOptions& options)
        : part(std::move(made)),
          parts(of),
          tuning(part, device, WithCores(options, CoresBeside(device.spec(), of.beside))) {}
    static TuningOptions WithCores(TuningOptions options, int cores) {
      options.cores = cores;
      return options;
    }
    const Graph part;
    const BatchParts parts;
    Tuning tuning;
  };

  // Adds a tuned plan for each way to run the batch in parts; none where samples depend on each
  // other.
  Status AddParts(std::vector<Plan>* plans) {
    const StatusOr<Samples> samples = FindSamples(graph_);
    if (!samples.ok()) return OkStatus();
    for (const BatchParts& parts : PartsToTry(plans->front(), device_.spec(), samples->batch)) {
      StatusOr<Graph> part = PartOfBatch(graph_, parts.instances);
      if (!part.ok()) break;
      parts_.push_back(std::make_unique<PartTuning>(*std::move(part), parts, device_, options_));
      AG_LET(Plan plan, parts_.back()->tuning.Run());
      plans->push_back(InstancesOf(std::move(plan), graph_, parts.instances, parts.beside));
    }
    return OkStatus();
  }

  // Adds plans in segments by the groups' times at all sizes of parts that run one after the other,
  // scaled to those of `plans`, which are of the whole and of parts_. One that cannot be made, or
  // that the device cannot run, is left out.
  Status AddSegments(std::vector<Plan>* plans) {
    if (std::ranges::none_of(parts_, [](const auto& part) { return part->parts.beside == 1; })) {
      return OkStatus();
    }
    AG_LET(const std::vector<PlanTiming> timings, whole_.TimeWhole(*plans));
    std::vector<PartPlan> at_sizes;
    for (size_t i = 0; i < plans->size(); ++i) {
      if (!timings[i].status.ok() || (*plans)[i].beside > 1) continue;
      at_sizes.push_back(i == 0 ? whole_.OneStream(1)
                                : parts_[i - 1]->tuning.OneStream(parts_[i - 1]->parts.instances));
      ScaleTo(timings[i].latency.median_ns, &at_sizes.back());
    }
    const auto make = [&](const Graph& piece, int32_t instances) -> StatusOr<Plan> {
      for (const auto& part : parts_) {
        if (part->parts == BatchParts{instances, 1}) return part->tuning.MakePiece(piece);
      }
      return whole_.MakePiece(piece);
    };
    for (Segmentation& found : ChooseSegments(graph_, at_sizes)) {
      StatusOr<Plan> plan =
          MakeSegmentsPlan(graph_, device_.spec(), std::move(found.segments), make);
      if (!plan.ok() || !device_.Build({graph_, *plan, TimingData()}).ok()) continue;
      plans->push_back(*std::move(plan));
    }
    return OkStatus();
  }

  const Graph& graph_;
  Device& device_;
  const TuningOptions& options_;
  Tuning whole_;
  std::vector<std::unique_ptr<PartTuning>> parts_;
};

}  // namespace

StatusOr<Plan> GuessedPlan(const Graph& graph, const DeviceSpec& spec,
                           const TuningOptions& options) {
  const Policy policy;
  GroupingOptions grouping = GroupingOf(options, options.layout);
  grouping.mixed_layouts = options.grouped;  // What is not grouped is a baseline, in one layout.
  PlanRequest request{graph, spec, policy, grouping, options.streams};
  request.streams_min = options.streams;
  if (options.streams == 0) {
    request.streams = options.cores > 0 ? 1 : spec.streams_max;
    request.streams_min = 1;
  }
  AG_LET(TimedPlan guessed, GuessPlan(request));
  return std::move(guessed.plan);
}

StatusOr<std::vector<Plan>> PlansToCompare(const Graph& graph, Device& device,
                                           const TuningOptions& options) {
  return BatchTuning(graph, device, options).Plans();
}

StatusOr<Plan> TunePlan(const Graph& graph, Device& device, const TuningOptions& options) {
  AG_LET(Plan plan, BatchTuning(graph, device, options).Run());
  plan.environment = device.environment();
  return plan;
}

}  // namespace ag
