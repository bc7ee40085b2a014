#include "device/profile/refine_kernels.h"

#include <map>

#include "device/profile/timing_data.h"
#include "plan/interval.h"

namespace ag {
namespace {

constexpr int kRuns = 15;
constexpr double kGain = 0.98;  // A rival must take less than this share of the time.
constexpr uint64_t kSeed = 1;

// A built plan with data to run on.
struct Runner {
  std::unique_ptr<Executable> executable;
  std::vector<Tensor> inputs, outputs;
};

StatusOr<Runner> MakeRunner(const Graph& graph, const Plan& plan, Device& device) {
  const TimingData data(kSeed);
  Runner runner;
  AG_LET(runner.executable, device.Build(graph, plan, data));
  data.FillBuffers(graph, &runner.inputs, &runner.outputs);
  return runner;
}

// Adds what each group took in one traced run to samples[group].
Status Trace(Runner& runner, std::vector<std::vector<double>>* samples) {
  AG_LET(const std::vector<TraceEvent> trace,
         runner.executable->TracedRun(runner.inputs, runner.outputs));
  for (const TraceEvent& event : trace) {
    (*samples)[event.group].push_back(static_cast<double>((event.end - event.begin).count()));
  }
  return OkStatus();
}

// By group: its problem's bytes, for groups that have a rival. `rivals` gets the plan with rivals.
std::map<size_t, std::string> PlanRivals(const Graph& graph, const Plan& plan,
                                         const MeasuredTimes& times, Plan* rivals) {
  std::map<size_t, std::string> problems;
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    const GroupProblem problem = ExtractGroup(graph, plan.groups[g], plan.policy);
    const Measurement* found = times.Find(problem);
    if (found == nullptr) continue;
    const std::pair<std::string, double>* rival = nullptr;
    for (const auto& alternative : found->alternatives) {
      if (rival == nullptr || alternative.second < rival->second) rival = &alternative;
    }
    if (rival == nullptr || rival->second > kRivalRatio * found->latency.median_ns) continue;
    rivals->groups[g].kernel = rival->first;
    problems[g] = EncodeGroupProblem(problem);
  }
  return problems;
}

// The plan with the rivals that were faster in place. Equal problems are judged together.
StatusOr<Plan> Judged(const Graph& graph, const Plan& plan, const Plan& rivals,
                      const std::map<size_t, std::string>& problems, Device& device) {
  AG_LET(Runner before, MakeRunner(graph, plan, device));
  AG_LET(Runner after, MakeRunner(graph, rivals, device));
  std::vector<std::vector<double>> old_ns(plan.groups.size()), new_ns(plan.groups.size());
  for (int run = 0; run < kRuns; ++run) {
    AG_TRY(Trace(before, &old_ns));
    AG_TRY(Trace(after, &new_ns));
  }
  std::map<std::string, std::pair<double, double>> sums;  // By problem.
  for (const auto& [g, problem] : problems) {
    sums[problem].first += Median(old_ns[g]);
    sums[problem].second += Median(new_ns[g]);
  }
  Plan judged = plan;
  for (const auto& [g, problem] : problems) {
    const auto& [old_sum, new_sum] = sums[problem];
    if (new_sum < kGain * old_sum) judged.groups[g].kernel = rivals.groups[g].kernel;
  }
  return judged;
}

StatusOr<bool> IsFaster(const Graph& graph, const Plan& plan, const Plan& other, Device& device) {
  AG_LET(Runner a, MakeRunner(graph, plan, device));
  AG_LET(Runner b, MakeRunner(graph, other, device));
  std::vector<double> ratios;
  for (int run = 0; run < kRuns; ++run) {
    AG_LET(const Nanos a_time, a.executable->TimedRun(a.inputs, a.outputs));
    AG_LET(const Nanos b_time, b.executable->TimedRun(b.inputs, b.outputs));
    ratios.push_back(static_cast<double>(b_time.count()) / static_cast<double>(a_time.count()));
  }
  return Median(ratios) < 1;
}

}  // namespace

StatusOr<Plan> RefineKernels(const Graph& graph, Plan plan, Device& device,
                             const MeasuredTimes& times) {
  if (device.simulated() || plan.policy.cold_cache) return plan;
  Plan rivals = plan;
  const std::map<size_t, std::string> problems = PlanRivals(graph, plan, times, &rivals);
  if (problems.empty()) return plan;
  AG_LET(Plan judged, Judged(graph, plan, rivals, problems, device));
  AG_LET(const bool is_faster, IsFaster(graph, plan, judged, device));
  return is_faster ? std::move(judged) : std::move(plan);
}

}  // namespace ag
