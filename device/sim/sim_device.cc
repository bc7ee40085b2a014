#include "device/sim/sim_device.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "base/file.h"
#include "base/thread.h"
#include "device/api/lost_device.h"
#include "device/api/segments.h"
#include "device/sim/recorded_times.h"
#include "device/sim/traits.h"
#include "graph/reference/evaluate.h"
#include "plan/format/plan_validate.h"
#include "plan/fusion/group_time.h"
#include "plan/schedule/contention_model.h"
#include "plan/schedule/makespan.h"

namespace ag {
namespace {

// Every group has these kernels. With a `scatter` the faster one depends on the problem.
const std::vector<std::string> kKernels = {"sim_a", "sim_b"};
constexpr std::string_view kCopyKernel = "copy";

// The state that all executables of one device share.
struct State {
  DeviceSpec spec;
  sim::Traits traits;
  std::optional<sim::RecordedTimes> recorded;
  double overlap =
      1;  // How groups beside each other share the cores (plan/schedule/contention_model.h).
  Nanos device_time{0};  // Device time so far; drift follows it.
  bool sticky = false;
  uint64_t builds = 0;

  Nanos Spend(double ns, Random* random) {
    const double progress = std::min(1.0, static_cast<double>(device_time.count()) / 1e9);
    const double factor = (1 + traits.drift * progress) * sim::NoiseFactor(traits, random);
    const Nanos spent(std::max<int64_t>(1, std::llround(ns * factor)));
    device_time += spent;
    return spent;
  }

  Status CheckAlive() const {
    if (!sticky) return OkStatus();
    return LostDevice(
        Err(StatusCode::kUnavailable, "{}: sticky error, open the device anew", spec.name));
  }
};

// Returns a kernel's time over the roofline: between 1 and 1 + scatter, by the problem and the
// kernel's name. It is the same for a warm and a cold problem, so that the cold one is never
// faster.
double FactorOf(GroupProblem problem, const std::string& kernel, double scatter) {
  if (scatter == 0) return 1;
  problem.cold_cache = false;
  const Digest digest = Sha256(EncodeGroupProblem(problem) + kernel);
  const int number = digest.bytes[0] * 256 + digest.bytes[1];
  return 1 + scatter * number / 65535;
}

// The constants of a graph, kept after the build. Synthetic ones are made when they are needed.
class HeldWeights : public WeightSource {
 public:
  static StatusOr<std::unique_ptr<HeldWeights>> Of(const Graph& graph,
                                                   const WeightSource& weights) {
    auto held = std::make_unique<HeldWeights>();
    held->synthetic_ = dynamic_cast<const SyntheticWeights*>(&weights) != nullptr;
    if (held->synthetic_) return held;
    for (const Node& node : graph.nodes()) {
      if (node.op != OpKind::kConstant || !node.constant->inline_bytes.empty()) continue;
      if (node.outputs[0].Bytes() == 0) continue;
      AG_LET(Tensor tensor, weights.Get(node.constant->digest, node.outputs[0]));
      held->tensors_[node.constant->digest] = std::move(tensor);
    }
    return held;
  }

  StatusOr<Tensor> Get(const Digest& digest, const TensorType& type) const override {
    if (synthetic_) return SyntheticWeights().Get(digest, type);
    const auto found = tensors_.find(digest);
    if (found != tensors_.end() && found->second.type() == type) return found->second;
    // Equal bytes have one name, whatever their shape.
    if (found != tensors_.end() && found->second.type().Bytes() == type.Bytes()) {
      return found->second.Retyped(type);
    }
    return Err(StatusCode::kNotFound, "constant {}", digest.Short());
  }

 private:
  bool synthetic_ = false;
  std::map<Digest, Tensor> tensors_;
};

class SimExecutable : public Executable {
 public:
  SimExecutable(std::shared_ptr<State> state, Graph graph, Plan plan,
                std::unique_ptr<HeldWeights> weights)
      : state_(std::move(state)),
        graph_(std::move(graph)),
        plan_(std::move(plan)),
        weights_(std::move(weights)),
        random_(state_->traits.seed * 1000003 + ++state_->builds) {}

  Status Prepare() {
    AG_LET(group_ns_, NsByGroup(/*is_cold=*/false));
    AG_LET(const std::vector<double> cold_ns, NsByGroup(/*is_cold=*/true));
    active_cores_.assign(plan_.groups.size(), 0);
    for (const Stream& stream : plan_.streams) {
      for (const Launch& launch : stream.launches) {
        const Group& group = plan_.groups[launch.group];
        const GroupProblem problem = ExtractGroup(graph_, group, plan_.policy);
        active_cores_[launch.group] =
            state_->recorded.has_value()
                ? state_->recorded->ActiveCores(problem, group.kernel, stream.cores)
                : EstimateGroup(problem, state_->spec).active_cores;
      }
    }
    const Contention contention{active_cores_, state_->overlap};
    makespan_ns_ = MakespanNs(graph_, plan_, group_ns_, state_->spec, contention);
    cold_makespan_ns_ = MakespanNs(graph_, plan_, cold_ns, state_->spec, contention);
    return OkStatus();
  }

  StatusOr<Nanos> Run(std::span<const Tensor> inputs, std::span<Tensor> outputs) override {
    AG_TRY(RunTypes(graph_).Check(inputs, outputs));
    AG_TRY(Fail());
    const EvaluateOptions options{.threads = UsableCores()};
    const std::vector<Tensor> given(inputs.begin(), inputs.end());
    AG_LET(const std::vector<Tensor> results, Evaluate(graph_, given, *weights_, options));
    for (size_t i = 0; i < results.size(); ++i) {
      const std::string_view bytes = results[i].bytes();
      std::copy(bytes.begin(), bytes.end(), outputs[i].Mutable<char>().begin());
    }
    if (Hit(sim::Fault::Kind::kWrong)) Spoil(outputs);
    return state_->Spend(makespan_ns_, &random_);
  }

  StatusOr<double> Time(const TimeRequest& request) override {
    const bool is_cold = request.caches == Caches::kEvicted;
    if (is_cold) AG_TRY(CheckMeasures(state_->spec, {.cold_cache = true}));
    if (request.trace != nullptr) return Trace(request.trace);
    return MeanNs(request.runs, [&]() -> StatusOr<Nanos> {
      AG_TRY(Fail());
      return state_->Spend(is_cold ? cold_makespan_ns_ : makespan_ns_, &random_);
    });
  }

 private:
  // Lists the groups in launch order, each as soon as its stream is free and its waits are done,
  // stretched so that the trace takes as long as a timed run.
  StatusOr<double> Trace(std::vector<TraceEvent>* trace) {
    AG_TRY(Fail());
    std::vector<double> begin(plan_.groups.size(), 0), end(plan_.groups.size(), -1);
    std::vector<size_t> next(plan_.streams.size(), 0);
    trace->clear();
    for (bool moved = true; std::exchange(moved, false);) {
      for (size_t s = 0; s < plan_.streams.size(); ++s) {
        while (TryLaunch(s, next[s], &begin, &end)) {
          trace->push_back({plan_.streams[s].launches[next[s]++].group, static_cast<int>(s)});
          moved = true;
        }
      }
    }
    const double last = end.empty() ? 0 : *std::max_element(end.begin(), end.end());
    const Nanos spent = state_->Spend(makespan_ns_, &random_);
    const double scale = last > 0 ? static_cast<double>(spent.count()) / last : 0;
    for (TraceEvent& event : *trace) {
      event.begin = Nanos(std::llround(begin[event.group] * scale));
      event.end = Nanos(std::llround(end[event.group] * scale));
    }
    return static_cast<double>(spent.count());
  }

  // Returns the times by group; 0 for groups that are not launched.
  StatusOr<std::vector<double>> NsByGroup(bool is_cold) const {
    std::vector<double> ns(plan_.groups.size(), 0);
    for (const Stream& stream : plan_.streams) {
      for (const Launch& launch : stream.launches) {
        AG_LET(ns[launch.group], GroupNs(plan_.groups[launch.group], stream, is_cold));
      }
    }
    return ns;
  }

  StatusOr<double> GroupNs(const Group& group, const Stream& stream, bool is_cold) const {
    GroupProblem problem = ExtractGroup(graph_, group, plan_.policy);
    problem.cold_cache = is_cold;
    if (state_->recorded.has_value()) return RecordedNs(problem, group, stream);
    if (IsCopy(group)) {
      const Port& port = group.outputs[0];
      const auto bytes = static_cast<double>(graph_.type(port.edge).Bytes());
      return 2 * bytes / state_->spec.bytes_per_second * 1e9 + state_->spec.launch_ns;
    }
    const std::string& kernel = group.kernel.empty() ? kKernels[0] : group.kernel;
    if (std::find(kKernels.begin(), kKernels.end(), kernel) == kKernels.end()) {
      return NoKernel(kernel);
    }
    if (problem.cores == 0) problem.cores = stream.cores;
    return RooflineNs(problem, state_->spec) * FactorOf(problem, kernel, state_->traits.scatter);
  }

  // Returns the kernel's recorded time, or the corrected estimate of a group that was not recorded.
  // A plan's kernels are those of its own policy, so for the other cache state their time may be
  // missing and is then estimated.
  StatusOr<double> RecordedNs(GroupProblem problem, const Group& group,
                              const Stream& stream) const {
    const auto* kernels = state_->recorded->Find(problem, stream.cores);
    if (kernels != nullptr) {
      for (const auto& [kernel, ns] : *kernels) {
        if (group.kernel.empty() || group.kernel == kernel) return ns;
      }
    }
    const bool is_own_state = problem.cold_cache == plan_.policy.cold_cache;
    const bool is_estimated = group.kernel.empty() || group.kernel == kEstimatedKernel;
    if (is_own_state && (kernels != nullptr || !is_estimated)) return NoKernel(group.kernel);
    if (problem.cores == 0) problem.cores = stream.cores;
    return state_->recorded->EstimateNs(problem);
  }

  Status NoKernel(const std::string& kernel) const {
    return Err(StatusCode::kInvalidArgument, "{}: no kernel {}", state_->spec.name, kernel);
  }

  // Begins launch `index` of stream `s` when all its waits are done; returns false otherwise.
  bool TryLaunch(size_t s, size_t index, std::vector<double>* begin,
                 std::vector<double>* end) const {
    const Stream& stream = plan_.streams[s];
    if (index >= stream.launches.size()) return false;
    const Launch& launch = stream.launches[index];
    double at = index == 0 ? 0 : (*end)[stream.launches[index - 1].group];
    for (const int group : launch.waits) {
      if ((*end)[group] < 0) return false;
      at = std::max(at, (*end)[group] + state_->spec.event_ns);
    }
    (*begin)[launch.group] = at;
    (*end)[launch.group] = at + group_ns_[launch.group];
    return true;
  }

  bool Hit(sim::Fault::Kind kind) const {
    const auto& faults = state_->traits.faults;
    return std::any_of(faults.begin(), faults.end(), [&](const sim::Fault& fault) {
      return fault.kind == kind && fault.Hits(graph_, plan_);
    });
  }

  // Acts on the faults that end a run.
  Status Fail() const {
    AG_TRY(state_->CheckAlive());
    if (Hit(sim::Fault::Kind::kCrash)) std::abort();
    while (Hit(sim::Fault::Kind::kHang)) pause();
    if (!Hit(sim::Fault::Kind::kSticky)) return OkStatus();
    state_->sticky = true;
    return state_->CheckAlive();
  }

  static void Spoil(std::span<Tensor> outputs) {
    for (Tensor& output : outputs) {
      if (output.type().NumElements() == 0) continue;
      output.Put(0, output.type().dtype == DType::kBool ? 1 - output.At(0) : 2 * output.At(0) + 1);
    }
  }

  std::shared_ptr<State> state_;
  Graph graph_;
  Plan plan_;
  std::unique_ptr<HeldWeights> weights_;
  Random random_;
  std::vector<double> group_ns_;
  double makespan_ns_ = 0;
  double cold_makespan_ns_ = 0;
};

class SimDevice : public Device {
 public:
  SimDevice(std::shared_ptr<State> state, Environment environment)
      : Device({.spec = state->spec, .environment = std::move(environment), .simulated = true}),
        state_(std::move(state)),
        random_(state_->traits.seed) {}

  StatusOr<std::vector<std::string>> Kernels(const GroupProblem& problem) override {
    AG_TRY(state_->CheckAlive());
    if (state_->recorded.has_value()) return RecordedKernels(problem);
    if (problem.pattern == kReorderPattern) {
      if (IsCopy(SingleGroupPlan(problem).groups[0])) {
        return std::vector<std::string>{std::string(kCopyKernel)};
      }
    } else if (state_->spec.FindPattern(problem.pattern) == nullptr) {
      return Err(StatusCode::kUnimplemented, "{}: no pattern {}", state_->spec.name,
                 problem.pattern);
    }
    return kKernels;
  }

  StatusOr<std::unique_ptr<Executable>> Build(const BuildRequest& request) override {
    const Graph& graph = request.graph;
    const Plan& plan = request.plan;
    AG_TRY(state_->CheckAlive());
    AG_TRY(ValidatePlan(graph, plan, state_->spec));
    if (!plan.segments.empty()) return BuildSegments(*this, request);
    const int64_t memory = state_->spec.memory_bytes;
    if (memory > 0 && plan.arena_bytes > memory) {
      return Err(StatusCode::kResourceExhausted, "{}: asked for {} bytes, there are {}",
                 state_->spec.name, plan.arena_bytes, memory);
    }
    AG_LET(std::unique_ptr<HeldWeights> held, HeldWeights::Of(graph, request.weights));
    auto executable = std::make_unique<SimExecutable>(state_, graph, plan, std::move(held));
    AG_TRY(executable->Prepare());
    return executable;
  }

  StatusOr<Nanos> Canary() override {
    AG_TRY(state_->CheckAlive());
    constexpr double kCanaryNs = 100'000;
    return state_->Spend(kCanaryNs, &random_);
  }

 private:
  StatusOr<std::vector<std::string>> RecordedKernels(const GroupProblem& problem) const {
    const auto* kernels = state_->recorded->Find(problem);
    if (kernels == nullptr) return std::vector<std::string>{std::string(kEstimatedKernel)};
    std::vector<std::string> names;
    for (const auto& [kernel, ns] : *kernels) names.push_back(kernel);
    return names;
  }

  std::shared_ptr<State> state_;
  Random random_;
};

// Returns the recording that the text is or names and sets its device's spec; nothing when there is
// none.
StatusOr<std::optional<Recording>> FindRecording(std::string_view text, const std::string& folder,
                                                 State* state) {
  if (IsRecording(text)) {
    AG_LET(Recording recording, ParseRecording(text));
    if (!recording.spec.has_value()) {
      return Err(StatusCode::kInvalidArgument,
                 "the recording has no spec; name it in a spec file by a line \"recording FILE\"");
    }
    state->spec = *recording.spec;
    return recording;
  }
  AG_LET(state->spec, ParseDeviceSpec(text));
  for (const auto& [key, file] : state->spec.extra) {
    if (key != "recording") continue;
    const std::string path = file.starts_with('/') ? file : folder + "/" + file;
    AG_LET(const std::string recorded, ReadFile(path));
    StatusOr<Recording> recording = ParseRecording(recorded);
    if (!recording.ok()) return Within(recording.status(), path);
    return *std::move(recording);
  }
  return std::optional<Recording>();
}

}  // namespace

StatusOr<std::unique_ptr<Device>> OpenSimDevice(std::string_view text, const std::string& folder) {
  auto state = std::make_shared<State>();
  AG_LET(const std::optional<Recording> recording, FindRecording(text, folder, state.get()));
  AG_LET(state->traits, sim::ParseTraits(state->spec));
  const std::string name =
      state->spec.name.starts_with("sim:") ? state->spec.name : "sim:" + state->spec.name;
  std::string recorded;
  if (recording.has_value()) {
    AG_LET(state->recorded, sim::RecordedTimes::Of(*recording, state->spec));
    state->overlap = state->recorded->overlap();
    recorded = "recording=" + Sha256(FormatRecording(*recording)).Short() + ";";
  }
  state->overlap = state->traits.overlap.value_or(state->overlap);
  Environment environment = fmt::format("device={};policy=2;{}spec={}", name, recorded,
                                        Sha256(FormatDeviceSpec(state->spec)).Short());
  return std::make_unique<SimDevice>(std::move(state), std::move(environment));
}

}  // namespace ag
