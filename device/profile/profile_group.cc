// The timing of one group with each kernel of the device.
#include <algorithm>
#include <limits>

#include "device/profile/profile.h"
#include "device/profile/session.h"
#include "device/profile/timing_data.h"

namespace ag {
namespace {

// A clock read costs about 30 ns; with 20 us a sample that is below 0.3 %.
constexpr double kSampleNs = 20e3;
constexpr int kGroupRunsMax = 64;
// Time of the samples between two looks at the canary: 10 ms, so that looking does not cost more.
constexpr double kChunkNs = 10e6;
// Chunks that the canary discards; after them the machine counts as never quiet and its chunks are
// used.
constexpr int kNoisyChunksMax = 4;
// Chunks that foreign load discards; load that is still there after them will stay.
constexpr int kForeignChunksMax = 1;

// A kernel whose best sample is slower than the best kernel's median by this factor is not timed
// further.
constexpr double kHopeless = 1.2;
constexpr double kNoRival = std::numeric_limits<double>::infinity();

// Sampling ends with this many samples when their middle half is this narrow.
constexpr int kSettledSamples = 15;
constexpr double kSettledSpread = 0.03;

// Returns the width of the middle half over the median.
double Spread(std::vector<double> samples) {
  std::ranges::sort(samples);
  const size_t n = samples.size();
  return (samples[3 * n / 4] - samples[n / 4]) / samples[n / 2];
}

struct Samples {
  std::vector<double> ns;
  int discarded = 0;
  int disturbed = 0;  // Of `ns`.
};

Status CheckTime(Clock& clock, const ProfileOptions& options) {
  if (clock.Now() < options.until) return OkStatus();
  return Err(StatusCode::kCancelled, "not measured: the time for it is up");
}

// The executable to time, and what the caches hold before each sample. In a plan a group's inputs
// were just written, and its weights were last touched in the run before. Without this state,
// kernels with larger weights and fewer operations look best.
struct Subject {
  Executable& executable;
  const std::vector<Tensor>& inputs;
  std::vector<Tensor>& outputs;
  Caches caches = Caches::kAsLeft;
};

Caches CachesFor(const Device& device, const GroupProblem& problem) {
  if (problem.cold_cache) return Caches::kEvicted;
  return device.cools_caches() ? Caches::kInputs : Caches::kAsLeft;
}

// Samples one executable. Invariants:
//   - Samples are taken in chunks between two looks at the canary and at the foreign load. A chunk
//     is used or discarded as a whole.
//   - Sampling ends at samples_max, when the samples have settled, when the kernel is hopeless, or
//     when the budget is spent and samples_min are there. Evictions and cooling count in the
//     budget.
//   - A discarded chunk gives back budget up to a half of it, so that later chunks can replace it.
class KernelTimer {
 public:
  KernelTimer(Clock& clock, const ProfileOptions& options, CanaryWatch& canary,
              const Subject& subject)
      : clock_(clock),
        options_(options),
        canary_(canary),
        subject_(subject),
        samples_min_(options.samples_min) {}

  // Returns the samples. `rival_ns` is the best kernel's median so far; a clearly slower kernel is
  // not timed further.
  StatusOr<Samples> Time(double rival_ns) {
    double run_ns = 0;
    for (int i = 0; i < std::max(1, options_.launches_before); ++i) {
      AG_LET(run_ns, subject_.executable.Time({subject_.inputs, subject_.outputs}));
    }
    runs_ = RunsPerSample(run_ns, kSampleNs, kGroupRunsMax);
    const bool is_cold = subject_.caches == Caches::kEvicted;
    // A second run would be warm: more samples.
    if (is_cold && runs_ > 1) samples_min_ = std::max(samples_min_, kSettledSamples);
    if (subject_.caches != Caches::kAsLeft) runs_ = 1;
    const Nanos budget = is_cold ? options_.cold_group_time : options_.group_time;
    const auto time_max = static_cast<double>(budget.count());
    Samples samples;
    int noisy = 0, foreign = 0;
    for (double spent = 0; !IsEnough(samples, spent, time_max);) {
      AG_TRY(CheckTime(clock_, options_));
      AG_TRY(canary_.Begin());
      AG_LET(const std::vector<double> chunk,
             Chunk(time_max - spent, options_.samples_max - static_cast<int>(samples.ns.size())));
      AG_LET(const bool quiet, canary_.IsQuiet());
      for (const double ns : chunk) spent += ns * runs_ + clearing_ns_;
      const bool is_foreign = canary_.others_busy();
      const bool is_noise = !quiet && noisy < kNoisyChunksMax;
      if (is_noise || (is_foreign && foreign < kForeignChunksMax)) {
        ++(is_noise ? noisy : foreign);
        samples.discarded += static_cast<int>(chunk.size());
        spent = std::min(spent, time_max / 2);  // Gives lost time back, up to a half.
        continue;
      }
      samples.ns.insert(samples.ns.end(), chunk.begin(), chunk.end());
      samples.disturbed += is_foreign ? static_cast<int>(chunk.size()) : 0;
      const bool is_hopeless = *std::ranges::min_element(samples.ns) > kHopeless * rival_ns;
      if (is_hopeless && static_cast<int>(samples.ns.size()) >= samples_min_) break;
    }
    return samples;
  }

 private:
  bool IsEnough(const Samples& samples, double spent, double time_max) const {
    const int count = static_cast<int>(samples.ns.size());
    if (count >= options_.samples_max) return true;
    if (count >= kSettledSamples && Spread(samples.ns) < kSettledSpread) return true;
    return spent >= time_max && count >= samples_min_;
  }

  StatusOr<std::vector<double>> Chunk(double time_left, int samples_left) {
    const double end = std::min(kChunkNs, time_left);
    const int count_max = std::min(samples_left, kSettledSamples);
    std::vector<double> chunk;
    double spent = 0;
    while (static_cast<int>(chunk.size()) < count_max &&
           (spent < end || static_cast<int>(chunk.size()) < samples_min_)) {
      AG_LET(const double sample, Sample());
      spent += sample * runs_ + clearing_ns_;
      chunk.push_back(sample);
    }
    return chunk;
  }

  // The device may run several times for a sample from evicted caches.
  StatusOr<double> Sample() {
    const Nanos begin = clock_.Now();
    AG_LET(const double ns,
           subject_.executable.Time({subject_.inputs, subject_.outputs, runs_, subject_.caches}));
    if (subject_.caches != Caches::kAsLeft) {
      clearing_ns_ = std::max(0.0, static_cast<double>((clock_.Now() - begin).count()) - ns);
    }
    return ns;
  }

  Clock& clock_;
  const ProfileOptions& options_;
  CanaryWatch& canary_;
  const Subject subject_;
  int samples_min_;
  int runs_ = 1;
  double clearing_ns_ = 0;  // Time of the last clearing of caches; counts in the budget.
};

}  // namespace

StatusOr<Measurement> ProfileGroup(Device& device, const GroupProblem& problem,
                                   const ProfileOptions& options, Clock& clock) {
  AG_LET(const std::vector<std::string> kernels, device.Kernels(problem));
  std::vector<Tensor> inputs, outputs;
  const TimingData data{};
  data.FillBuffers(problem.graph, &inputs, &outputs);
  AG_TRY(WarmUp(device, options, clock));
  CanaryWatch canary(device, options);
  Measurement best{.simulated = device.simulated()};
  std::vector<std::pair<std::string, double>> all;
  Status failure;
  int discarded = 0;
  for (const std::string& kernel : kernels) {
    AG_TRY(CheckTime(clock, options));
    Plan plan = SingleGroupPlan(problem);
    plan.groups[0].kernel = kernel;
    StatusOr<std::unique_ptr<Executable>> built = device.Build({problem.graph, plan, data});
    if (!built.ok()) {
      // A kernel may be refused when it is built; the others may still work.
      if (failure.ok()) failure = Within(built.status(), "kernel " + kernel);
      continue;
    }
    KernelTimer timer(clock, options, canary,
                      {**built, inputs, outputs, CachesFor(device, problem)});
    const bool has_rival = best.samples > 0;
    AG_LET(const Samples samples, timer.Time(has_rival ? best.latency.median_ns : kNoRival));
    const Latency latency = Summarize(samples.ns);
    all.emplace_back(kernel, latency.median_ns);
    discarded += samples.discarded;
    if (best.samples > 0 && best.latency.median_ns <= latency.median_ns) continue;
    best.latency = latency;
    best.samples = static_cast<int>(samples.ns.size());
    best.disturbed = samples.disturbed;
    best.kernel = kernel;
    best.active_cores = (*built)->active_cores(0);
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

GroupMeasurer MeasureOn(Device& device, const ProfileOptions& options, Clock& clock) {
  return [&device, options, &clock](const std::vector<GroupProblem>& problems) {
    std::vector<StatusOr<Measurement>> results;
    for (const GroupProblem& problem : problems) {
      results.push_back(ProfileGroup(device, problem, options, clock));
    }
    return results;
  };
}

StatusOr<Measurement> ProfilePair(Device& device, const PairProblem& pair,
                                  const ProfileOptions& options, Clock& clock) {
  AG_LET(const PairRun run, PlanOfPair(pair));
  std::vector<Tensor> inputs, outputs;
  const TimingData data{};
  data.FillBuffers(run.graph, &inputs, &outputs);
  AG_LET(const std::unique_ptr<Executable> built, device.Build({run.graph, run.plan, data}));
  AG_TRY(WarmUp(device, options, clock));
  CanaryWatch canary(device, options);
  KernelTimer timer(clock, options, canary,
                    {*built, inputs, outputs, CachesFor(device, pair.groups[0])});
  AG_LET(const Samples samples, timer.Time(kNoRival));
  MarkBusy(device, clock);
  Measurement measurement{.latency = Summarize(samples.ns)};
  measurement.samples = static_cast<int>(samples.ns.size());
  measurement.discarded = samples.discarded;
  measurement.disturbed = samples.disturbed;
  measurement.canary_ns = canary.median_ns();
  measurement.simulated = device.simulated();
  return measurement;
}

}  // namespace ag
