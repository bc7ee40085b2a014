// How to time (DESIGN section 8): warm-up, samples beside a canary, paired blocks, verdicts.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/measuring_lock.h"
#include "device/api/device.h"
#include "device/profile/foreign_load.h"
#include "plan/measurement.h"
#include "plan/pair_problem.h"

namespace ag {

struct ProfileOptions {
  Nanos warm_up{200'000'000};  // Once per session and after idle_max without a launch.
  Nanos idle_max{1'000'000'000};
  int launches_before = 3;       // Per group, unmeasured.
  Nanos group_time{30'000'000};  // Sampling per kernel ends here,
  int samples_min = 7;           // but not before this many samples,
  int samples_max = 101;         // nor beyond this many.
  double canary_band = 0.05;     // A canary moved by more than this throws its block away.
  int blocks_min = 9;            // Finals: A B B A blocks per candidate.
  int blocks_max = 45;
  Nanos finals_time{20'000'000'000};
  double effect_min = 0.01;  // Smaller ratios are SAME, however sure.
  // A cold sample is a flush and a run; both are on the budget. Such a kernel's sampling ends here
  // in place of group_time: flushing 64 MiB takes about 10 ms, so these are about 15 samples.
  Nanos cold_group_time{150'000'000};
  bool cold_cache = false;  // Of plans; a group's problem says it itself.
  uint64_t seed = 1;
  ForeignLoad* foreign_load = nullptr;  // Null: not watched. A worker watches real devices.
  // By the clock: a group that is not done by then is kCancelled; plans get no further blocks, but
  // one each in any case.
  Nanos until = Nanos::max();
};

// The host's measuring lock, held for as long as the result lives: real devices measure alone on
// their host, a simulated one takes nobody's cores. Waits for it; `on_wait`, when given, is called
// as LockWait::on_wait is (base/measuring_lock.h). kCancelled: it did not come until `until` by
// RealClock.
StatusOr<std::optional<FileLock>> MeasureAlone(
    const Device& device, const std::function<void(pid_t holder)>& on_wait = nullptr,
    Nanos until = Nanos::max());
// The same for a device that is known to be real.
StatusOr<FileLock> MeasureAlone(const LockWait& wait);

// Median with the bootstrap's 95 % interval, computed exactly instead of by drawing: the seed
// changes nothing and is kept for callers that record it. REQUIRES: samples not empty, all finite
// and > 0.
Latency Summarize(std::span<const double> samples_ns, uint64_t seed);

// FASTER / SLOWER when the interval of the paired ratio is beyond 1 by effect_min; SAME when it
// lies within; AMBIGUOUS otherwise.
Verdict Judge(double ratio_low, double ratio_high, double effect_min);

// Times one group with every kernel the device offers and returns the best with the rest listed.
// A cold problem's samples are Executable::ColdRunNs.
// kCancelled: options.until came before every kernel was timed, which says nothing of the group.
// Kernels that turn out not to build are left out; when none builds, the first one's error is
// returned. A sample that is zero, negative or not finite fails the measurement (kDataLoss). On a
// machine that is never quiet some chunks are thrown away and counted, the rest is believed: the
// interval shows it, and `disturbed` what of it was taken beside foreign load.
StatusOr<Measurement> ProfileGroup(Device& device, const GroupProblem& problem,
                                   const ProfileOptions& options, Clock& clock);

// Times both groups of the pair together, on two streams, from the begin of both to the end of the
// later one. The measurement has no kernel and no busy cores. kInvalidArgument: the device has one
// stream, or lacks a kernel of the pair.
StatusOr<Measurement> ProfilePair(Device& device, const PairProblem& pair,
                                  const ProfileOptions& options, Clock& clock);

// Finals: plans[0] is the input. Every candidate is paired with it in interleaved blocks on the
// same data; AMBIGUOUS ones get more blocks until blocks_max or finals_time. A candidate that fails
// has its status in its timing; an input that fails, or kUnavailable from any, is returned. Under
// options.cold_cache every run is one from flushed caches; the flushes are part of finals_time.
// Of each candidate blocks_min blocks beside foreign load are thrown away; further ones are taken,
// because the input ran beside the same, and counted as `disturbed`.
struct PlanToTime {
  Executable* executable = nullptr;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
};
StatusOr<std::vector<PlanTiming>> ProfilePlans(Device& device, std::vector<PlanToTime> plans,
                                               const ProfileOptions& options, Clock& clock);

}  // namespace ag
