#include "worker/execute.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/log.h"
#include "base/thread.h"
#include "device/api/lost_device.h"
#include "device/profile/refine_kernels.h"
#include "graph/reference/evaluate.h"
#include "graph/text_form.h"
#include "plan/equivalence.h"
#include "plan/fusion/group_problem.h"

namespace ag {
namespace {

// The part of a set's time in which plans are made ready; the rest is for running them.
constexpr double kReadyShare = 0.6;

// Runs a graph on the reference kernels.
class OnReferenceKernels : public Executable {
 public:
  OnReferenceKernels(const Graph& graph, const WeightSource& weights,
                     std::function<void()> on_progress)
      : graph_(graph), weights_(weights), on_progress_(std::move(on_progress)) {}

  StatusOr<Nanos> Run(std::span<const Tensor> inputs, std::span<Tensor> outputs) override {
    const auto tick = [&](NodeId) {
      on_progress_();
      return OkStatus();
    };
    AG_LET(std::vector<Tensor> results, Evaluate(graph_, {inputs.begin(), inputs.end()}, weights_,
                                                 {.threads = UsableCores(), .on_node = tick}));
    std::ranges::move(results, outputs.begin());
    return Nanos{0};
  }

  StatusOr<double> Time(const TimeRequest&) override {
    return Err(StatusCode::kUnimplemented, "reference kernels are not timed");
  }

 private:
  const Graph& graph_;
  const WeightSource& weights_;
  const std::function<void()> on_progress_;
};

// Returns the values on the first of the inputs on which an output differs in a way that counts.
StatusOr<std::optional<ShownDifference>> FirstDifference(const OutputsToCheck& request,
                                                         Clock& clock) {
  AG_LET(const CheckResult checked, CheckOutputs(request, clock));
  const auto first = std::ranges::find(checked.compared, true, &ComparedInputs::differs);
  if (first == checked.compared.end()) return std::nullopt;
  const CheckInputs& inputs = request.inputs[first - checked.compared.begin()];
  ShownDifference shown{.compared = first->inputs, .seed = inputs.set ? 0 : inputs.seed};
  AG_LET(shown.inputs, DataOf(inputs, DescribeInputs(request.graph)));
  shown.expected = EmptyOutputs(request.graph);
  shown.actual = EmptyOutputs(request.candidate_graph);
  AG_TRY(request.reference.Run(shown.inputs, shown.expected), "reference");
  AG_TRY(request.candidate.Run(shown.inputs, shown.actual), "candidate");
  for (size_t i = 0; i < shown.expected.size(); ++i) {
    shown.errors.push_back(CompareOutput(request.graph, i, shown.expected[i], shown.actual[i]));
  }
  return shown;
}

}  // namespace

Executor::Executor(std::unique_ptr<Device> device, std::unique_ptr<WeightSource> weights,
                   Clock& clock, ProfileOptions profile, std::function<void(int)> on_progress,
                   std::function<void(pid_t)> on_wait)
    : device_(std::move(device)),
      weights_(std::move(weights)),
      clock_(clock),
      profile_(profile),
      on_progress_(std::move(on_progress)),
      on_wait_(std::move(on_wait)) {
  profile_.history = &history_;
  if (profile_.interference != nullptr) quiet_.emplace(*profile_.interference, clock_);
}

void Executor::EndWithin(double seconds) {
  profile_.until =
      seconds > 0 ? clock_.Now() + Nanos(static_cast<int64_t>(seconds * 1e9)) : Nanos::max();
}

// Waits for the measuring lock (none for a simulated device), then a while for foreign load to end,
// and returns the lock.
StatusOr<std::optional<FileLock>> Executor::Alone(int index) {
  const auto on_wait = [this, index](pid_t holder) {
    on_progress_(index);
    if (on_wait_) on_wait_(holder);
  };
  AG_LET(auto alone, MeasureAlone(*device_, on_wait, profile_.until));
  if (quiet_.has_value()) quiet_->Wait(profile_.until);
  return alone;
}

StatusOr<Measurement> Executor::MeasureGroup(int index, const std::string& problem_bytes) {
  on_progress_(index);
  AG_LET(const GroupProblem problem, DecodeGroupProblem(problem_bytes));
  StatusOr<Measurement> measurement = Err(StatusCode::kInternal, "not measured");
  {
    AG_LET(const auto alone, Alone(index));
    measurement = ProfileGroup(*device_, problem, profile_, clock_);
  }
  AG_TRY(measurement);
  if (WorkOf(problem).flops <= kCheckedFlopsMax) AG_TRY(TakeRightKernel(problem, &*measurement));
  return measurement;
}

StatusOr<Measurement> Executor::MeasurePair(int index, const std::string& pair_bytes) {
  on_progress_(index);
  AG_LET(const PairProblem pair, DecodePairProblem(pair_bytes));
  AG_LET(const auto alone, Alone(index));
  return ProfilePair(*device_, pair, profile_, clock_);
}

// Replaces the measured kernel by the fastest one that agrees with the reference. Of an alternative
// only the median is known, so it becomes the whole latency.
Status Executor::TakeRightKernel(const GroupProblem& problem, Measurement* measurement) {
  Plan plan = SingleGroupPlan(problem);
  plan.groups[0].kernel = measurement->kernel;
  const Status first = CompareWithReference(problem, plan);
  if (first.code() != StatusCode::kDataLoss) return first;
  LogWarn("{}", Message(first));
  std::vector<std::pair<std::string, double>>& others = measurement->alternatives;
  std::ranges::stable_sort(others, {}, [](const auto& other) { return other.second; });
  while (!others.empty()) {
    const auto [kernel, ns] = others.front();
    others.erase(others.begin());
    plan.groups[0].kernel = kernel;
    const Status status = CompareWithReference(problem, plan);
    if (status.ok()) {
      measurement->kernel = kernel;
      measurement->latency = {ns, ns, ns};
      measurement->active_cores = 0;
      return OkStatus();
    }
    if (status.code() != StatusCode::kDataLoss) return status;
    LogWarn("{}", Message(status));
  }
  return first;
}

Status Executor::CompareWithReference(const GroupProblem& problem, const Plan& plan) {
  const SyntheticWeights weights;
  AG_LET(const std::unique_ptr<Executable> executable,
         device_->Build({problem.graph, plan, weights}));
  const std::vector<Tensor> inputs = UsualInputs(problem.graph, 1);
  std::vector<Tensor> outputs = EmptyOutputs(problem.graph);
  AG_TRY(executable->Run(inputs, outputs));
  AG_LET(const std::vector<Tensor> expected,
         Evaluate(problem.graph, inputs, weights, {.threads = UsableCores()}));
  const double tolerance = KernelTolerance(CoarsestPrecision(problem.precision, problem.graph));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OutputError error = CompareTensors("output", expected[i], outputs[i]);
    if (IsEquivalent(error, tolerance)) continue;
    return Err(
        StatusCode::kDataLoss,
        "kernel {} of a {} group differs from the reference by {:.3g} of the largest value{}",
        plan.groups[0].kernel, problem.pattern, error.max_rel,
        error.nonfinite_differs ? " and in its Inf or NaN" : "");
  }
  return OkStatus();
}

StatusOr<std::unique_ptr<Executable>> Executor::Build(const Candidate& candidate) {
  return device_->Build({candidate.graph, candidate.plan, *weights_});
}

StatusOr<std::vector<Tensor>> Executor::InputsToTime(const Graph& graph,
                                                     const TimingOptions& options) const {
  const std::vector<InputSpec> specs = DescribeInputs(graph);
  std::vector<Tensor> inputs = MakeInputs(specs, InputKind::kUsual, options.seed);
  if (!options.inputs) return inputs;
  AG_LET(const InputSet set, ReadSet(*options.inputs));
  AG_TRY(TakeFromSet(set, specs, &inputs));
  return inputs;
}

StatusOr<std::vector<PlanTiming>> Executor::TimePlans(
    const std::vector<StatusOr<Candidate>>& candidates, const TimingOptions& options) {
  std::vector<PlanTiming> timings(candidates.size());
  std::vector<std::unique_ptr<Executable>> built;
  std::vector<PlanToTime> plans;
  std::vector<size_t> positions;  // Index in `candidates` of each of `plans`.
  std::vector<Tensor> inputs;     // Of all: the first one's graph says what they may be.
  const Nanos begin = clock_.Now();
  for (size_t i = 0; i < candidates.size(); ++i) {
    const bool is_limited = profile_.until != Nanos::max();
    // The first rival is always made ready; without it there would be no result.
    if (is_limited && i > 1 && clock_.Now() - begin > kReadyShare * (profile_.until - begin)) {
      timings[i].status = Err(StatusCode::kCancelled, "not timed: the time for it is up");
      continue;
    }
    on_progress_(static_cast<int>(i));
    const auto make_ready = [&]() -> Status {
      AG_TRY(candidates[i]);
      AG_LET(std::unique_ptr<Executable> executable, Build(*candidates[i]));
      const Graph& graph = candidates[i]->graph;
      if (i == 0) {
        AG_LET(inputs, InputsToTime(graph, options));
      }
      PlanToTime plan{executable.get(), inputs, EmptyOutputs(graph)};
      // A bad candidate dies in its first run, which happens under its own index.
      AG_TRY(executable->Run(plan.inputs, plan.outputs));
      plans.push_back(std::move(plan));
      built.push_back(std::move(executable));
      positions.push_back(i);
      return OkStatus();
    };
    const Status status = make_ready();
    if (!status.ok() && i == 0) return Within(status, "the input");
    if (IsLostDevice(status)) return status;
    timings[i].status = status;
  }
  on_progress_(-1);
  AG_LET(const auto alone, Alone(-1));
  ProfileOptions profile = profile_;
  if (options.blocks_max > 0) profile.blocks_max = options.blocks_max;
  profile.cold_cache = options.cold_cache;
  AG_LET(const std::vector<PlanTiming> timed,
         ProfilePlans(*device_, std::move(plans), profile, clock_));
  for (size_t i = 0; i < timed.size(); ++i) timings[positions[i]] = timed[i];
  return timings;
}

StatusOr<CheckResult> Executor::Check(const CheckRequest& request) {
  if (request.inputs.empty()) return Err(StatusCode::kInvalidArgument, "check: no inputs");
  on_progress_(0);  // A check is one entry, however many sets of inputs it has.
  AG_LET(const std::unique_ptr<Executable> reference, Build(request.reference));
  AG_LET(const std::unique_ptr<Executable> candidate, Build(request.candidate));
  return CheckOutputs({.graph = request.reference.graph,
                       .reference = *reference,
                       .candidate_graph = request.candidate.graph,
                       .candidate = *candidate,
                       .weights = *weights_,
                       .inputs = request.inputs,
                       .tolerance = request.tolerance,
                       .optional_max = request.optional_max,
                       .on_progress = [this] { on_progress_(0); }},
                      clock_);
}

StatusOr<InputSet> Executor::ReadSet(const Digest& digest) const {
  if (files_.blobs == nullptr) return Err(StatusCode::kFailedPrecondition, "no folder of inputs");
  return ReadInputSet(files_.blobs->PathOf(digest));
}

StatusOr<std::optional<ShownDifference>> Executor::Show(const CheckRequest& request) {
  if (request.inputs.empty()) return Err(StatusCode::kInvalidArgument, "show: no inputs");
  const auto tick = [this] { on_progress_(0); };
  tick();
  const Graph &before = request.reference.graph, &after = request.candidate.graph;
  OnReferenceKernels reference(before, *weights_, tick), by_kernels(after, *weights_, tick);
  for (const bool on_device : {false, true}) {
    std::unique_ptr<Executable> on;
    if (on_device) {
      AG_LET(on, Build(request.candidate));
    }
    OutputsToCheck compared{.graph = before,
                            .reference = reference,
                            .candidate_graph = after,
                            .candidate = on_device ? *on : by_kernels,
                            .weights = *weights_,
                            .inputs = request.inputs,
                            .tolerance = request.tolerance,
                            .optional_max = request.optional_max,
                            .on_progress = tick};
    for (CheckInputs& inputs : compared.inputs) inputs.reference_kernels = false;
    AG_LET(std::optional<ShownDifference> shown, FirstDifference(compared, clock_));
    if (!shown) continue;
    shown->on_device_only = on_device;
    return shown;
  }
  return std::nullopt;
}

StatusOr<FileTimes> Executor::TimeFileSet(const FileSetRequest& request) {
  if (files_.blobs == nullptr) return Err(StatusCode::kFailedPrecondition, "no folder of files");
  on_progress_(0);
  TimeFilesRequest to_time;
  for (const auto& [digest, runtime, plan] : request.files) {
    to_time.files.push_back({files_.blobs->PathOf(digest), runtime, plan});
  }
  to_time.device = files_.device;
  to_time.shapes = request.shapes;
  if (request.inputs) to_time.inputs = files_.blobs->PathOf(*request.inputs);
  to_time.cold_cache = request.cold_cache;
  to_time.seconds = request.seconds;
  to_time.blocks_max = request.blocks_max;
  if (profile_.until != Nanos::max()) {
    to_time.until = RealClock().Now() + (profile_.until - clock_.Now());
  }
  to_time.answer_max = request.answer_max;
  to_time.on_progress = [this] { on_progress_(0); };
  to_time.on_wait = on_wait_;
  return TimeFiles(to_time);
}

StatusOr<std::vector<OutputError>> Executor::CompareFileSet(const FileSetRequest& request,
                                                            const std::vector<Digest>& sets,
                                                            int seeds) {
  if (files_.blobs == nullptr) return Err(StatusCode::kFailedPrecondition, "no folder of files");
  if (request.files.size() != 2) {
    return Err(StatusCode::kInvalidArgument, "compare: {} files, not 2", request.files.size());
  }
  on_progress_(0);
  std::vector<std::string> paths;
  for (const Digest& set : sets) paths.push_back(files_.blobs->PathOf(set));
  return CompareInOnnxRuntime({.reference = files_.blobs->PathOf(request.files[0].digest),
                               .file = files_.blobs->PathOf(request.files[1].digest),
                               .shapes = request.shapes,
                               .inputs = paths,
                               .seeds = seeds,
                               .on_progress = [this] { on_progress_(0); }});
}

StatusOr<bool> Executor::IsRight(const GroupProblem& problem, const std::string& kernel) {
  if (WorkOf(problem).flops > kCheckedFlopsMax) return true;
  Plan plan = SingleGroupPlan(problem);
  plan.groups[0].kernel = kernel;
  const Status status = CompareWithReference(problem, plan);
  if (status.code() != StatusCode::kDataLoss) {
    AG_TRY(status);
    return true;
  }
  LogWarn("{}", Message(status));
  return false;
}

StatusOr<std::vector<KernelChoice>> Executor::RefinePlan(const Candidate& candidate,
                                                         const std::vector<KernelChoice>& rivals) {
  const auto tick = [this] { on_progress_(0); };
  tick();
  const auto& [graph, plan] = candidate;
  std::vector<KernelChoice> faster;
  {
    AG_LET(const auto alone, Alone(0));
    AG_LET(faster, RefineKernels(graph, plan, rivals, *device_,
                                 {.weights = weights_.get(), .on_run = tick}));
  }
  std::map<std::string, bool> is_right;  // By problem and kernel.
  std::vector<KernelChoice> taken;
  for (KernelChoice& choice : faster) {
    const Group& group = plan.groups[static_cast<size_t>(choice.group)];
    const GroupProblem problem = ExtractGroup(graph, group, plan.policy);
    const auto [known, is_new] = is_right.try_emplace(EncodeGroupProblem(problem) + choice.kernel);
    tick();
    if (is_new) {
      AG_LET(known->second, IsRight(problem, choice.kernel));
    }
    if (known->second) taken.push_back(std::move(choice));
  }
  return taken;
}

Status Executor::Qualify() {
  on_progress_(0);
  MemoryWeights unused;
  AG_LET(const Graph graph, ParseGraph("input x f32[1,16,6,6]\n"
                                       "w = const f32[16,16,3,3] seed 1\n"
                                       "b = const f32[16] seed 2\n"
                                       "c = conv(x, w, b) strides=[1,1] pads=[1,1,1,1] "
                                       "dilations=[1,1] group=1\n"
                                       "output y = relu(c)\n",
                                       &unused));
  GroupProblem problem;
  problem.graph = graph;
  problem.pattern = "conv";
  problem.input_layouts = {Layout::kPlain};
  problem.output_layouts = {Layout::kPlain};
  const Status status = CompareWithReference(problem, SingleGroupPlan(problem));
  if (status.ok()) return status;
  return Err(StatusCode::kUnavailable, "device {} failed its qualification: {}",
             device_->spec().name, Message(status));
}

}  // namespace ag
