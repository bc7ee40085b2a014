#include "device/profile/refine_kernels.h"

#include <algorithm>
#include <map>

#include "device/profile/timing_data.h"
#include "plan/interval.h"

namespace ag {
namespace {

constexpr double kGain = 0.98;  // A rival must take less than this share of the time.

// A built plan with data to run on.
struct Runner {
  std::unique_ptr<Executable> executable;
  std::vector<Tensor> inputs, outputs;
};

class Refinement {
 public:
  Refinement(const Graph& graph, Device& device, const RefineOptions& options)
      : graph_(graph), device_(device), options_(options) {}

  // Returns the rivals that are faster in traced runs. Equal problems are judged together.
  StatusOr<std::vector<KernelChoice>> FasterInside(const Plan& plan,
                                                   const std::vector<KernelChoice>& rivals);
  StatusOr<bool> IsFaster(const Plan& plan, const Plan& other);

 private:
  using Samples = std::vector<std::vector<double>>;  // By group.

  StatusOr<Runner> MakeRunner(const Plan& plan);
  Status Trace(Runner& runner, Samples* samples);
  StatusOr<double> Time(Runner& runner);
  bool Goes(int run) const;
  void Tick() const {
    if (options_.on_run) options_.on_run();
  }

  const Graph& graph_;
  Device& device_;
  const RefineOptions& options_;
  const TimingData data_{};
  double spent_ns_ = 0;  // Time spent in the current comparison.
};

bool Refinement::Goes(int run) const {
  if (run >= kRefineRunsMax) return false;
  return run < kRefineRunsMin || spent_ns_ < static_cast<double>(options_.time_max.count()) / 2;
}

StatusOr<Runner> Refinement::MakeRunner(const Plan& plan) {
  Tick();
  Runner runner;
  const WeightSource& weights = options_.weights != nullptr ? *options_.weights : data_;
  AG_LET(runner.executable, device_.Build({graph_, plan, weights}));
  data_.FillBuffers(graph_, &runner.inputs, &runner.outputs);
  return runner;
}

// Adds the time of each group in one run.
Status Refinement::Trace(Runner& runner, Samples* samples) {
  Tick();
  std::vector<TraceEvent> trace;
  AG_TRY(runner.executable->Time({runner.inputs, runner.outputs, 1, Caches::kAsLeft, &trace}));
  for (const TraceEvent& event : trace) {
    const auto ns = static_cast<double>((event.end - event.begin).count());
    samples->at(static_cast<size_t>(event.group)).push_back(ns);
    spent_ns_ += ns;
  }
  return OkStatus();
}

StatusOr<double> Refinement::Time(Runner& runner) {
  Tick();
  AG_LET(const double ns, runner.executable->Time({runner.inputs, runner.outputs}));
  spent_ns_ += ns;
  return ns;
}

StatusOr<std::vector<KernelChoice>> Refinement::FasterInside(
    const Plan& plan, const std::vector<KernelChoice>& rivals) {
  AG_LET(Runner before, MakeRunner(plan));
  AG_LET(Runner after, MakeRunner(WithKernels(plan, rivals)));
  Samples old_ns(plan.groups.size()), new_ns(plan.groups.size());
  spent_ns_ = 0;
  for (int run = 0; Goes(run); ++run) {
    AG_TRY(Trace(before, &old_ns));
    AG_TRY(Trace(after, &new_ns));
  }
  std::map<std::string, std::pair<double, double>> sums;  // By problem.
  std::vector<std::string> problems;                      // Of each rival.
  for (const KernelChoice& rival : rivals) {
    const auto g = static_cast<size_t>(rival.group);
    problems.push_back(EncodeGroupProblem(ExtractGroup(graph_, plan.groups[g], plan.policy)));
    if (old_ns[g].empty() || new_ns[g].empty()) continue;  // Never launched, e.g. a view.
    auto& [old_sum, new_sum] = sums[problems.back()];
    old_sum += Median(old_ns[g]);
    new_sum += Median(new_ns[g]);
  }
  std::vector<KernelChoice> faster;
  for (size_t i = 0; i < rivals.size(); ++i) {
    const auto& [old_sum, new_sum] = sums[problems[i]];
    if (new_sum < kGain * old_sum) faster.push_back(rivals[i]);
  }
  return faster;
}

StatusOr<bool> Refinement::IsFaster(const Plan& plan, const Plan& other) {
  AG_LET(Runner a, MakeRunner(plan));
  AG_LET(Runner b, MakeRunner(other));
  std::vector<double> ratios;
  spent_ns_ = 0;
  for (int run = 0; Goes(run); ++run) {
    AG_LET(const double a_ns, Time(a));
    AG_LET(const double b_ns, Time(b));
    ratios.push_back(b_ns / a_ns);
  }
  return Median(ratios) < 1;
}

}  // namespace

StatusOr<std::vector<KernelChoice>> RefineKernels(const Graph& graph, const Plan& plan,
                                                  const std::vector<KernelChoice>& rivals,
                                                  Device& device, const RefineOptions& options) {
  const auto groups = static_cast<int>(plan.groups.size());
  for (const KernelChoice& rival : rivals) {
    if (rival.group >= 0 && rival.group < groups) continue;
    return Err(StatusCode::kInvalidArgument, "rival kernel {}: of group {}, the plan has {}",
               rival.kernel, rival.group, groups);
  }
  if (device.simulated() || rivals.empty()) return std::vector<KernelChoice>();
  Refinement refinement(graph, device, options);
  AG_LET(std::vector<KernelChoice> faster, refinement.FasterInside(plan, rivals));
  if (faster.empty()) return faster;
  AG_LET(const bool is_faster, refinement.IsFaster(plan, WithKernels(plan, faster)));
  if (!is_faster) faster.clear();
  return faster;
}

}  // namespace ag
