// Timed results as they travel between device, worker, coordinator, cache and search.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/device_spec.h"

namespace ag {

// Median and the 95 % bootstrap interval of the median, in nanoseconds.
struct Latency {
  double median_ns = 0;
  double low_ns = 0;
  double high_ns = 0;
};

// How many times faster one thing is than another: the median of paired ratios with its interval.
struct Ratio {
  double median = 1;
  double low = 1;
  double high = 1;
};

struct Measurement {
  Latency latency;
  int samples = 0;
  int discarded = 0;     // Samples thrown away: moved canary, foreign load, changed clocks.
  double canary_ns = 0;  // The canary's time beside it.
  std::string kernel;    // The fastest kernel, and what the others took:
  std::vector<std::pair<std::string, double>> alternatives;  // name, median ns.
  bool simulated = false;  // From device/sim: an estimate by nature, labelled so everywhere.
  // How many of the device's cores (SMs of a GPU) the fastest kernel keeps busy while it runs
  // alone; 0: not known.
  int busy_cores = 0;
  int disturbed = 0;  // Of `samples`: taken beside foreign load all the same.
};

// kInvalidArgument: a time that is not finite or not positive, a median outside of its interval, or
// fewer than 0 busy cores. Whether there are more than the device has, who knows the device says.
Status CheckMeasurement(const Measurement& measurement);

enum class Verdict : uint8_t { kFaster = 0, kSlower = 1, kSame = 2, kAmbiguous = 3 };
std::string_view VerdictName(Verdict verdict);  // "FASTER", ...

// Finals: candidates against the input, interleaved in blocks. Entry 0 is the input itself.
struct PlanTiming {
  Status status;  // Why it has no timing (crashed, wrong, ...); OK otherwise.
  Latency latency;
  double speedup = 1;  // Median of paired block ratios input/candidate, with interval.
  double speedup_low = 1;
  double speedup_high = 1;
  Verdict verdict = Verdict::kSame;
  int blocks = 0;
  int discarded = 0;  // Blocks thrown away, as samples are of groups.
  int disturbed = 0;  // Of `blocks`: taken beside foreign load all the same.
};

// Equivalence of one output of a candidate with the input's.
struct OutputError {
  std::string name;
  double max_abs = 0;
  double max_rel = 0;          // max|a-b| / max|a|
  double max_elementwise = 0;  // Above a floor of 1e-3 max|a|.
  bool nonfinite_differs = false;
};

}  // namespace ag
