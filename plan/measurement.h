// Timed results, exchanged by device, worker, coordinator, cache and search. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/spec/device_spec.h"

namespace ag {

// The median and the 95 % bootstrap interval of the median, in nanoseconds.
struct Latency {
  double median_ns = 0;
  double low_ns = 0;
  double high_ns = 0;
};

// The ratio of two times: the median of paired ratios, with its interval.
struct Ratio {
  double median = 1;
  double low = 1;
  double high = 1;
};

struct Measurement {
  Latency latency;
  int samples = 0;
  // Samples thrown away because of a moved canary, foreign load or changed clocks.
  int discarded = 0;
  double canary_ns = 0;  // The canary's time during the measurement.
  std::string kernel;    // The fastest kernel.
  std::vector<std::pair<std::string, double>> alternatives;  // The other kernels: name, median ns.
  bool simulated = false;  // From device/sim: always an estimate, and labelled as one.
  // The cores of the device (SMs of a GPU) that the fastest kernel keeps busy when it runs alone;
  // 0: unknown.
  int active_cores = 0;
  int disturbed = 0;  // Those of `samples` that were taken in spite of foreign load.
};

// Returns kInvalidArgument for a time that none can be (IsPossibleTime, plan/check_figures.h), a
// median outside its interval, or a count that is below 0 or above what it is a part of. The caller
// compares active_cores with the device's cores.
Status CheckMeasurement(const Measurement& measurement);

enum class Verdict : uint8_t { kFaster = 0, kSlower = 1, kSame = 2, kAmbiguous = 3 };
std::string_view VerdictName(Verdict verdict);  // "FASTER", ...

// The result for one candidate of the final comparison: candidates and the input are timed
// interleaved, in blocks. Entry 0 is the input.
struct PlanTiming {
  Status status;  // The reason for no timing (crashed, wrong, ...), or OK.
  Latency latency;
  double speedup = 1;  // Median of paired block ratios input/candidate, with its interval.
  double speedup_low = 1;
  double speedup_high = 1;
  Verdict verdict = Verdict::kSame;
  int blocks = 0;
  int discarded = 0;  // Blocks thrown away, for the same reasons as samples.
  int disturbed = 0;  // Those of `blocks` that were taken in spite of foreign load.
};

// The error of one output of a candidate, compared with the input's.
struct OutputError {
  std::string name;
  double max_abs = 0;
  double max_rel = 0;          // max|a-b| / max|a|
  double max_elementwise = 0;  // Above a floor of 1e-3 max|a|.
  bool nonfinite_differs = false;
};

// A set of inputs on which a candidate and the input were compared.
struct ComparedInputs {
  std::string inputs;  // "usual", "full", ... (docs/report.md), or the name of the user's own set.
  std::string shapes = {};         // Of inputs whose sizes are open; empty: the bound ones.
  bool reference_kernels = false;  // Compared with the reference kernels as well.
  bool differs = false;            // By more than the tolerance.
  std::string left_out = {};       // Why they were not compared or do not count; empty: they do.
};

}  // namespace ag
