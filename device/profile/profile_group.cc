// Times one group with each kernel of the device.
#include <algorithm>

#include "device/profile/interval.h"
#include "device/profile/profile.h"
#include "device/profile/session.h"

namespace ag {
namespace {

// Clock reads cost about 30 ns each; 20 us a sample keeps them below 0.3 %.
constexpr double kSampleNs = 20e3;
constexpr int kRunsMax = 64;
// Samples between two looks at the canary: 10 ms of them, so that looking does not cost more.
constexpr double kChunkNs = 10e6;
// A machine that is never quiet is believed after this many chunks thrown away; its interval is
// wide.
constexpr int kNoisyChunksMax = 4;

struct Samples {
  std::vector<double> ns;
  int discarded = 0;
};

class KernelTimer {
 public:
  KernelTimer(Executable& executable, const ProfileOptions& options, CanaryWatch& canary,
              const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs)
      : executable_(executable),
        options_(options),
        canary_(canary),
        inputs_(inputs),
        outputs_(outputs) {}

  StatusOr<Samples> Time() {
    double run_ns = 0;
    for (int i = 0; i < std::max(1, options_.launches_before); ++i) {
      AG_LET(run_ns, TakeSample(executable_, inputs_, outputs_, 1));
    }
    runs_ = RunsPerSample(run_ns, kSampleNs, kRunsMax);
    const auto time_max = static_cast<double>(options_.group_time.count());
    Samples samples;
    int noisy = 0;
    for (double spent = 0; !IsEnough(samples, spent, time_max);) {
      AG_TRY(canary_.Begin());
      AG_LET(const std::vector<double> chunk, Chunk(time_max - spent));
      AG_LET(const bool quiet, canary_.IsQuiet());
      for (const double ns : chunk) spent += ns * runs_;
      if (!quiet && noisy < kNoisyChunksMax) {
        ++noisy;
        samples.discarded += static_cast<int>(chunk.size());
        spent = std::min(spent, time_max / 2);  // Lost time is given back, within reason.
        continue;
      }
      samples.ns.insert(samples.ns.end(), chunk.begin(), chunk.end());
    }
    return samples;
  }

 private:
  bool IsEnough(const Samples& samples, double spent, double time_max) const {
    const int count = static_cast<int>(samples.ns.size());
    if (count >= options_.samples_max) return true;
    return spent >= time_max && count >= options_.samples_min;
  }

  StatusOr<std::vector<double>> Chunk(double time_left) {
    const double end = std::min(kChunkNs, time_left);
    std::vector<double> chunk;
    double spent = 0;
    while (static_cast<int>(chunk.size()) < options_.samples_max &&
           (spent < end || static_cast<int>(chunk.size()) < options_.samples_min)) {
      AG_LET(const double sample, TakeSample(executable_, inputs_, outputs_, runs_));
      spent += sample * runs_;
      chunk.push_back(sample);
    }
    return chunk;
  }

  Executable& executable_;
  const ProfileOptions& options_;
  CanaryWatch& canary_;
  const std::vector<Tensor>& inputs_;
  std::vector<Tensor>& outputs_;
  int runs_ = 1;
};

// Inputs and outputs of the problem's graph, filled with seeded data.
void FillBuffers(const Graph& graph, uint64_t seed, std::vector<Tensor>* inputs,
                 std::vector<Tensor>* outputs) {
  for (const NodeId id : graph.inputs()) {
    inputs->push_back(RandomTensor(graph.type({id, 0}), seed + inputs->size()));
  }
  for (const GraphOutput& output : graph.outputs()) {
    outputs->push_back(Tensor::Zeros(graph.type(output.edge)));
  }
}

}  // namespace

StatusOr<Measurement> ProfileGroup(Device& device, const GroupProblem& problem,
                                   const ProfileOptions& options, Clock& clock) {
  AG_LET(const std::vector<std::string> kernels, device.Kernels(problem));
  std::vector<Tensor> inputs, outputs;
  FillBuffers(problem.graph, options.seed, &inputs, &outputs);
  AG_TRY(WarmUp(device, options, clock));
  CanaryWatch canary(device, options);
  const SyntheticWeights weights;
  Measurement best{.simulated = device.simulated()};
  std::vector<std::pair<std::string, double>> all;
  Status failure;
  int discarded = 0;
  for (const std::string& kernel : kernels) {
    Plan plan = SingleGroupPlan(problem);
    plan.groups[0].kernel = kernel;
    StatusOr<std::unique_ptr<Executable>> built = device.Build(problem.graph, plan, weights);
    if (!built.ok()) {
      // A kernel may turn out not to fit when it is made; the others still can.
      if (failure.ok()) failure = Within(built.status(), "kernel " + kernel);
      continue;
    }
    KernelTimer timer(**built, options, canary, inputs, outputs);
    AG_LET(const Samples samples, timer.Time());
    const Latency latency = Summarize(samples.ns, options.seed);
    all.emplace_back(kernel, latency.median_ns);
    discarded += samples.discarded;
    if (best.samples > 0 && best.latency.median_ns <= latency.median_ns) continue;
    best.latency = latency;
    best.samples = static_cast<int>(samples.ns.size());
    best.kernel = kernel;
  }
  MarkBusy(device, clock);
  if (all.empty()) return failure;
  best.discarded = discarded;
  best.canary_ns = canary.median_ns();
  for (const auto& alternative : all) {
    if (alternative.first != best.kernel) best.alternatives.push_back(alternative);
  }
  return best;
}

}  // namespace ag
