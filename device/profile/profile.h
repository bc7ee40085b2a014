// The timing of groups and plans (docs/design.md, Measuring): warm-up, samples beside a canary,
// paired blocks, verdicts. One thread at a time for one device; Summarize and Judge are pure.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/measuring_lock.h"
#include "device/api/device.h"
#include "device/profile/interference_monitor.h"
#include "device/profile/kernel_history.h"
#include "plan/fusion/learned_times.h"
#include "plan/fusion/pair_problem.h"

namespace ag {

struct ProfileOptions {
  Nanos warm_up{200'000'000};  // Once per session and after idle_max without a launch.
  Nanos idle_max{1'000'000'000};
  int launches_before = 3;       // Per group, not measured.
  Nanos group_time{30'000'000};  // Sampling per kernel ends here,
  int samples_min = 7;           // but not before this many samples,
  int samples_max = 101;         // nor beyond this many.
  double canary_band = 0.05;     // A canary that moved by more than this discards its block.
  int blocks_min = 9;            // Final comparison: A B B A blocks per candidate.
  int blocks_max = 45;
  Nanos comparison_time{20'000'000'000};
  double effect_min = 0.01;  // Smaller gains are SAME, even when sure.
  // The end of the sampling of a cold kernel, in place of group_time. A cold sample is an eviction
  // and a run, and both count: evicting 64 MiB takes about 10 ms, so this is about 15 samples.
  Nanos cold_group_time{150'000'000};
  bool cold_cache = false;                      // For plans; a group's problem says it itself.
  InterferenceMonitor* interference = nullptr;  // Null: not watched. A worker watches real devices.
  // Whether kernels that lose are left behind early (successive halving, KernelHistory); false:
  // every kernel is timed in full, as on a simulated device always.
  bool halving = true;
  KernelHistory* history = nullptr;  // What groups before this one say. Null: nothing.
  // A time of the clock: a group that is not done by then is kCancelled; plans get no further
  // blocks, but at least one each.
  Nanos until = Nanos::max();
};

// Waits for the host's measuring lock, which is held as long as the result lives: real devices
// measure alone on their host. Returns no lock for a simulated device, which uses nobody's cores.
// Calls `on_wait`, when given, as LockWait::on_wait (base/measuring_lock.h). kCancelled: the lock
// was not free until `until` by RealClock.
StatusOr<std::optional<FileLock>> MeasureAlone(
    const Device& device, const std::function<void(pid_t holder)>& on_wait = nullptr,
    Nanos until = Nanos::max());
// Does the same for a device that is known to be real.
StatusOr<FileLock> MeasureAlone(const LockWait& wait);

// Returns the median with the bootstrap's 95 % interval, computed exactly instead of by drawing.
// REQUIRES: samples not empty, all finite and > 0.
Latency Summarize(std::span<const double> samples_ns);

// Returns FASTER or SLOWER when the interval of the paired ratio is beyond 1 by effect_min, SAME
// when it lies within, AMBIGUOUS otherwise.
Verdict Judge(double ratio_low, double ratio_high, double effect_min);

// Times one group with the kernels that the device offers and returns the fastest, with the others
// listed: under options.halving a few samples of each, more of the better half, and all samples of
// the two that are left; kernels that lost at the nearest shapes of options.history are not built.
// Adds the result to the history. Samples of a cold problem begin with evicted caches. Leaves out
// kernels that cannot be built; when none can, returns the first one's error. kCancelled:
// options.until came before every kernel was timed, which says nothing about the group. kDataLoss:
// a sample is zero, negative or not finite. On a machine that is never quiet some chunks are
// discarded and counted and later ones are used: the interval is then wide, and `disturbed` counts
// the samples that were taken beside foreign load.
StatusOr<Measurement> ProfileGroup(Device& device, const GroupProblem& problem,
                                   const ProfileOptions& options, Clock& clock);

// Returns a function that times groups one after the other, for LearnedTimes. All references must
// outlive it. Where options.history is null it keeps one of its own.
GroupMeasurer MeasureOn(Device& device, const ProfileOptions& options, Clock& clock);

// Times both groups of the pair together, on two streams, from the common begin to the end of the
// later one. The measurement has no kernel and no busy cores. kInvalidArgument: the device has one
// stream, or lacks a kernel of the pair.
StatusOr<Measurement> ProfilePair(Device& device, const PairProblem& pair,
                                  const ProfileOptions& options, Clock& clock);

// The final comparison: plans[0] is the input, and every candidate is paired with it in interleaved
// blocks on the same data. AMBIGUOUS candidates get more blocks until blocks_max or
// comparison_time. A candidate that fails has its status in its timing; an input that fails, or a
// LostDevice from any, is returned. Under options.cold_cache every run is one from evicted caches;
// the evictions count in comparison_time. Beside foreign load, up to blocks_min blocks of each
// candidate are discarded; further ones are used, because the input ran beside the same load, and
// counted as `disturbed`.
struct PlanToTime {
  Executable* executable = nullptr;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
};
StatusOr<std::vector<PlanTiming>> ProfilePlans(Device& device, std::vector<PlanToTime> plans,
                                               const ProfileOptions& options, Clock& clock);

}  // namespace ag
