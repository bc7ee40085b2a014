#include "runtime/tune_plan.h"

#include <algorithm>

#include "device/profile/measured_times.h"
#include "device/profile/refine_kernels.h"
#include "device/profile/timing_data.h"
#include "plan/schedule.h"

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
  HopefulTimes(const MeasuredTimes& known, const DeviceSpec& spec) : known_(known), spec_(spec) {}
  GroupTime Time(const GroupProblem& problem) override {
    if (problem.pattern == kViewPattern) return {};
    GroupProblem wide = problem;
    wide.cores = 0;
    for (const GroupProblem* asked : {&problem, static_cast<const GroupProblem*>(&wide)}) {
      const Measurement* found = known_.Find(*asked);
      if (found != nullptr) return {.ns = found->latency.median_ns};
    }
    return {.ns = RooflineNs(wide, spec_)};
  }

 private:
  const MeasuredTimes& known_;
  const DeviceSpec& spec_;
};

class Tuning {
 public:
  Tuning(const Graph& graph, Device& device, const OwnPlanOptions& options)
      : graph_(graph),
        device_(device),
        options_(options),
        times_(device, {.group_time = kGroupTime}, RealClock()) {}

  StatusOr<Plan> Run();

 private:
  struct Trial {
    Plan plan;
    double makespan_ns = 0;
  };
  StatusOr<Trial> Try(GroupTimes& times, int streams) const;
  StatusOr<std::vector<Trial>> PromisingTrials(double one_stream_ns);
  StatusOr<Plan> Refined(Plan plan);
  StatusOr<Plan> Fastest(const std::vector<Plan>& plans);

  const Graph& graph_;
  Device& device_;
  const OwnPlanOptions& options_;
  MeasuredTimes times_;
  const TimingData weights_{1};
};

// Returns the plan on this many streams and its simulated time.
StatusOr<Tuning::Trial> Tuning::Try(GroupTimes& times, int streams) const {
  const DeviceSpec& spec = device_.spec();
  Trial trial;
  AG_LET(trial.plan, PlanByTimes(graph_, spec, times, options_, streams));
  std::vector<double> ns;
  Sharing sharing;
  for (const Group& group : trial.plan.groups) {
    GroupTime time;
    if (group.pattern != kViewPattern) {
      time = times.Time(ExtractGroup(graph_, group, trial.plan.policy));
    }
    ns.push_back(time.ns);
    sharing.busy_cores.push_back(time.busy_cores);
  }
  trial.makespan_ns = MakespanNs(graph_, trial.plan, ns, spec, sharing);
  return trial;
}

StatusOr<std::vector<Tuning::Trial>> Tuning::PromisingTrials(double one_stream_ns) {
  const DeviceSpec& spec = device_.spec();
  HopefulTimes hopeful(times_, spec);
  double bar_ns = kPromise * one_stream_ns;
  std::vector<Trial> trials;
  for (int streams = 2; streams <= std::min(spec.streams_max, spec.cores); ++streams) {
    AG_LET(const Trial hope, Try(hopeful, streams));
    if (hope.makespan_ns >= bar_ns) continue;
    AG_LET(Trial trial, Try(times_, streams));
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
  const auto measured = [&](const GroupProblem& problem) -> std::optional<Measurement> {
    const Measurement* found = times_.Find(problem);
    if (found == nullptr) return std::nullopt;
    return *found;
  };
  const std::vector<KernelChoice> rivals = CloseRivals(graph_, plan, measured);
  AG_LET(const std::vector<KernelChoice> faster,
         RefineKernels(graph_, plan, rivals, device_, {.weights = &weights_}));
  return WithKernels(std::move(plan), faster);
}

// Returns plans[0], unless another one is FASTER.
StatusOr<Plan> Tuning::Fastest(const std::vector<Plan>& plans) {
  std::vector<std::unique_ptr<Executable>> built;
  std::vector<PlanToTime> to_time;
  for (const Plan& plan : plans) {
    AG_LET(std::unique_ptr<Executable> executable, device_.Build(graph_, plan, weights_));
    PlanToTime one{.executable = executable.get()};
    weights_.FillBuffers(graph_, &one.inputs, &one.outputs);
    built.push_back(std::move(executable));
    to_time.push_back(std::move(one));
  }
  const ProfileOptions options{.blocks_max = kTrialBlocksMax, .finals_time = kTrialsTime};
  AG_LET(const std::vector<PlanTiming> timings,
         ProfilePlans(device_, std::move(to_time), options, RealClock()));
  size_t best = 0;
  for (size_t i = 1; i < timings.size(); ++i) {
    const PlanTiming& timing = timings[i];
    const bool is_faster = timing.status.ok() && timing.verdict == Verdict::kFaster;
    const double bar = best == 0 ? 1 : timings[best].speedup;
    if (is_faster && timing.speedup > bar) best = i;
  }
  return plans[best];
}

StatusOr<Plan> Tuning::Run() {
  AG_LET(Trial one, Try(times_, std::max(1, options_.streams)));
  AG_LET(Plan refined, Refined(std::move(one.plan)));
  std::vector<Plan> plans;
  plans.push_back(std::move(refined));
  if (options_.streams == 0 && options_.grouped) {
    AG_LET(std::vector<Trial> trials, PromisingTrials(one.makespan_ns));
    for (Trial& trial : trials) {
      AG_LET(Plan plan, Refined(std::move(trial.plan)));
      plans.push_back(std::move(plan));
    }
  }
  if (plans.size() == 1) return std::move(plans[0]);
  return Fastest(plans);
}

}  // namespace

StatusOr<Plan> PlanByTimes(const Graph& graph, const DeviceSpec& spec, GroupTimes& times,
                           const OwnPlanOptions& options, int streams) {
  const GroupingOptions grouping{
      .grouped = options.grouped, .layout = options.layout, .mixed_layouts = options.tune};
  return MakePlan(graph, spec, Policy(), times, grouping, streams);
}

StatusOr<Plan> TunePlan(const Graph& graph, Device& device, const OwnPlanOptions& options) {
  AG_LET(Plan plan, Tuning(graph, device, options).Run());
  plan.environment = device.environment();
  return plan;
}

}  // namespace ag
