// The timing of one group with each kernel of the device.
#include <algorithm>
#include <cmath>
#include <limits>

#include "device/profile/profile.h"
#include "device/profile/session.h"
#include "device/profile/timing_data.h"
#include "plan/interval.h"

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

// Sampling ends with this many samples when the standard error of their median is this small a
// share of it: a third of what medians differ by from minute to minute (learned_times.cc).
constexpr int kSettledSamples = 15;
constexpr double kSettledError = 0.015;

// Returns the standard error of the median over the median, by the width of the middle half, as for
// normal samples: sqrt(pi / 2) times the deviation, which is the width / 1.349, over sqrt(n).
double MedianError(std::vector<double> samples) {
  constexpr double kErrorOfWidth = 0.929;
  std::ranges::sort(samples);
  const size_t n = samples.size();
  const double width = samples[3 * n / 4] - samples[n / 4];
  return kErrorOfWidth * width / (samples[n / 2] * std::sqrt(static_cast<double>(n)));
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

// Successive halving (Jamieson and Talwalkar 2016, "Non-stochastic best arm identification and
// hyperparameter optimization", section 3): the samples that every kernel gets in a round; after
// it the better half of them goes on, two at least. What is left then is timed in full.
constexpr int kRoundSamples[] = {3, 7};
constexpr size_t kLeftMin = 2;
// After a round a kernel goes only on when its best sample is below the best of all by this factor.
constexpr double kRoundHopeless = 1.5;
// Kernels that would hold more than this together are built and timed one after the other.
constexpr double kHeldBytesMax = 1 << 28;

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

  // Launches the executable a few times, not measured, the first time that it is called.
  Status Start() {
    if (is_started_) return OkStatus();
    is_started_ = true;
    double run_ns = 0;
    for (int i = 0; i < std::max(1, options_.launches_before); ++i) {
      AG_LET(run_ns, subject_.executable.Time({subject_.inputs, subject_.outputs}));
    }
    runs_ = RunsPerSample(run_ns, kSampleNs, kGroupRunsMax);
    // A second run would be warm: more samples.
    if (IsCold() && runs_ > 1) samples_min_ = std::max(samples_min_, kSettledSamples);
    if (subject_.caches != Caches::kAsLeft) runs_ = 1;
    return OkStatus();
  }

  // Returns one sample, whatever the canary says.
  StatusOr<double> Look() {
    AG_TRY(Start());
    return Sample();
  }

  // Returns the samples. `rival_ns` is the best kernel's median so far; a clearly slower kernel is
  // not timed further.
  StatusOr<Samples> Time(double rival_ns) {
    AG_TRY(Start());
    const Nanos budget = IsCold() ? options_.cold_group_time : options_.group_time;
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
  bool IsCold() const { return subject_.caches == Caches::kEvicted; }

  bool IsEnough(const Samples& samples, double spent, double time_max) const {
    const int count = static_cast<int>(samples.ns.size());
    if (count >= options_.samples_max) return true;
    if (count >= kSettledSamples && MedianError(samples.ns) < kSettledError) return true;
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
  bool is_started_ = false;
  int runs_ = 1;
  double clearing_ns_ = 0;  // Time of the last clearing of caches; counts in the budget.
};

// A kernel of the group on its way to the choice.
struct Contender {
  std::string kernel;
  std::unique_ptr<Executable> built;
  std::unique_ptr<KernelTimer> timer;
  double best_ns = kNoRival;    // Of all looks.
  double median_ns = kNoRival;  // Of the last look, or of the samples.
};

// The choice among the kernels of one group.
class KernelContest {
 public:
  KernelContest(Device& device, const GroupProblem& problem, const ProfileOptions& options,
                Clock& clock)
      : device_(device),
        problem_(problem),
        options_(options),
        clock_(clock),
        canary_(device, options) {
    data_.FillBuffers(problem.graph, &inputs_, &outputs_);
  }

  StatusOr<Measurement> Run(const std::vector<std::string>& kernels) {
    std::vector<std::string> order = kernels;
    // Simulated times cost nothing, so all of them are taken.
    const bool halves = options_.halving && !device_.simulated();
    if (halves && options_.history != nullptr) {
      order = options_.history->Promising(problem_, kernels);
    }
    for (const std::string& kernel : order) left_.push_back({.kernel = kernel});
    const double held_bytes = WorkOf(problem_).bytes * static_cast<double>(left_.size());
    if (halves && left_.size() > 1 && held_bytes <= kHeldBytesMax) AG_TRY(Halve());
    AG_TRY(TimeTheRest());
    MarkBusy(device_, clock_);
    if (best_.samples == 0) return failure_;
    best_.canary_ns = canary_.median_ns();
    std::erase_if(all_, [&](const auto& one) { return one.first == best_.kernel; });
    best_.alternatives = std::move(all_);
    return std::move(best_);
  }

 private:
  // Builds the kernel where it is not built. Returns false where it is refused: the others may
  // still work.
  StatusOr<bool> Build(Contender* one) {
    AG_TRY(CheckTime(clock_, options_));
    if (one->built != nullptr) return true;
    Plan plan = SingleGroupPlan(problem_);
    plan.groups[0].kernel = one->kernel;
    StatusOr<std::unique_ptr<Executable>> built = device_.Build({problem_.graph, plan, data_});
    if (!built.ok()) {
      if (failure_.ok()) failure_ = Within(built.status(), "kernel " + one->kernel);
      return false;
    }
    one->built = *std::move(built);
    one->timer = std::make_unique<KernelTimer>(
        clock_, options_, canary_,
        Subject{*one->built, inputs_, outputs_, CachesFor(device_, problem_)});
    return true;
  }

  // Samples all kernels that are left in turn, so that a slow moment of the machine hits all.
  Status LookInTurn(int samples) {
    std::vector<std::vector<double>> ns(left_.size());
    for (int i = 0; i < samples; ++i) {
      for (size_t k = 0; k < left_.size(); ++k) {
        AG_TRY(CheckTime(clock_, options_));
        AG_LET(const double sample, left_[k].timer->Look());
        ns[k].push_back(sample);
      }
    }
    for (size_t k = 0; k < left_.size(); ++k) {
      left_[k].best_ns = std::min(left_[k].best_ns, *std::ranges::min_element(ns[k]));
      left_[k].median_ns = Median(ns[k]);
    }
    return OkStatus();
  }

  // Leaves the kernels that are worth timing in full, the fastest first.
  Status Halve() {
    for (const int samples : kRoundSamples) {
      if (samples != kRoundSamples[0] && left_.size() <= kLeftMin) break;
      std::vector<Contender> tried;
      for (Contender& one : left_) {
        AG_LET(const bool is_built, Build(&one));
        if (is_built) tried.push_back(std::move(one));
      }
      left_ = std::move(tried);
      AG_TRY(LookInTurn(samples));
      std::ranges::stable_sort(left_, {}, &Contender::best_ns);
      const size_t half = std::max(kLeftMin, (left_.size() + 1) / 2);
      while (left_.size() > half ||
             (left_.size() > 1 && left_.back().best_ns > kRoundHopeless * left_[0].best_ns)) {
        all_.emplace_back(left_.back().kernel, left_.back().median_ns);
        left_.pop_back();
      }
    }
    return OkStatus();
  }

  Status TimeTheRest() {
    for (Contender& one : left_) {
      AG_LET(const bool is_built, Build(&one));
      if (!is_built) continue;
      const bool has_rival = best_.samples > 0;
      AG_LET(const Samples samples,
             one.timer->Time(has_rival ? best_.latency.median_ns : kNoRival));
      const int active_cores = one.built->active_cores(0);
      one.timer.reset();
      one.built.reset();
      const Latency latency = Summarize(samples.ns);
      all_.emplace_back(one.kernel, latency.median_ns);
      best_.discarded += samples.discarded;
      if (has_rival && best_.latency.median_ns <= latency.median_ns) continue;
      best_.latency = latency;
      best_.samples = static_cast<int>(samples.ns.size());
      best_.disturbed = samples.disturbed;
      best_.kernel = one.kernel;
      best_.active_cores = active_cores;
    }
    return OkStatus();
  }

  Device& device_;
  const GroupProblem& problem_;
  const ProfileOptions& options_;
  Clock& clock_;
  CanaryWatch canary_;
  const TimingData data_{};
  std::vector<Tensor> inputs_, outputs_;
  std::vector<Contender> left_;
  std::vector<std::pair<std::string, double>> all_;  // The times of the kernels that were timed.
  Measurement best_;
  Status failure_;
};

}  // namespace

StatusOr<Measurement> ProfileGroup(Device& device, const GroupProblem& problem,
                                   const ProfileOptions& options, Clock& clock) {
  AG_LET(const std::vector<std::string> kernels, device.Kernels(problem));
  AG_TRY(WarmUp(device, options, clock));
  KernelContest contest(device, problem, options, clock);
  AG_LET(Measurement measurement, contest.Run(kernels));
  measurement.simulated = device.simulated();
  if (options.history != nullptr) options.history->Add(problem, measurement);
  return measurement;
}

GroupMeasurer MeasureOn(Device& device, const ProfileOptions& options, Clock& clock) {
  const auto own = std::make_shared<KernelHistory>();
  return [&device, given = options, own, &clock](const std::vector<GroupProblem>& problems) {
    ProfileOptions options = given;
    if (options.history == nullptr) options.history = own.get();
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
