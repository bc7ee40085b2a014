#include "plan/measurement.h"

#include "plan/check_figures.h"

#include <cmath>

namespace ag {

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFaster:
      return "FASTER";
    case Verdict::kSlower:
      return "SLOWER";
    case Verdict::kSame:
      return "SAME";
    case Verdict::kAmbiguous:
      return "AMBIGUOUS";
  }
  return "?";
}

namespace {

constexpr double kTimeMinNs = 1e-3, kTimeMaxNs = 1e15;

Status CheckLatency(const Latency& latency) {
  for (const double ns : {latency.median_ns, latency.low_ns, latency.high_ns}) {
    if (!IsPossibleTime(ns)) return Err(StatusCode::kInvalidArgument, "a time of {} ns", ns);
  }
  if (latency.low_ns <= latency.median_ns && latency.median_ns <= latency.high_ns) {
    return OkStatus();
  }
  return Err(StatusCode::kInvalidArgument, "median {} ns outside [{}, {}]", latency.median_ns,
             latency.low_ns, latency.high_ns);
}

// `disturbed` is a part of `all`.
Status CheckCounts(std::string_view what, int all, int discarded, int disturbed) {
  if (all >= 0 && discarded >= 0 && disturbed >= 0 && disturbed <= all) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "{} {}, {} discarded, {} disturbed", all, what,
             discarded, disturbed);
}

Status CheckVerdict(const PlanTiming& t) {
  for (const double ratio : {t.speedup_low, t.speedup, t.speedup_high}) {
    if (std::isfinite(ratio) && ratio > 0) continue;
    return Err(StatusCode::kInvalidArgument, "a speedup of {}", ratio);
  }
  if (t.speedup_low > t.speedup || t.speedup > t.speedup_high) {
    return Err(StatusCode::kInvalidArgument, "speedup {} outside [{}, {}]", t.speedup,
               t.speedup_low, t.speedup_high);
  }
  if (t.verdict == Verdict::kFaster ? t.speedup_low > 1
                                    : t.verdict != Verdict::kSlower || t.speedup_high < 1) {
    return OkStatus();
  }
  return Err(StatusCode::kInvalidArgument, "{} with a speedup from {} to {}",
             VerdictName(t.verdict), t.speedup_low, t.speedup_high);
}

}  // namespace

bool IsPossibleTime(double ns) { return ns >= kTimeMinNs && ns <= kTimeMaxNs; }

Status CheckMeasurement(const Measurement& m) {
  AG_TRY(CheckLatency(m.latency), "measurement");
  AG_TRY(CheckCounts("samples", m.samples, m.discarded, m.disturbed), "measurement");
  if (!(m.canary_ns == 0 || IsPossibleTime(m.canary_ns))) {
    return Err(StatusCode::kInvalidArgument, "measurement: a canary of {} ns", m.canary_ns);
  }
  for (const auto& [kernel, ns] : m.alternatives) {
    if (IsPossibleTime(ns)) continue;
    return Err(StatusCode::kInvalidArgument, "measurement: kernel {} with a time of {} ns", kernel,
               ns);
  }
  if (m.active_cores < 0) {
    return Err(StatusCode::kInvalidArgument, "measurement: {} active cores", m.active_cores);
  }
  return OkStatus();
}

Status CheckPlanTiming(const PlanTiming& timing) {
  AG_TRY(CheckLatency(timing.latency), "timing of a plan");
  AG_TRY(CheckVerdict(timing), "timing of a plan");
  return Within(CheckCounts("blocks", timing.blocks, timing.discarded, timing.disturbed),
                "timing of a plan");
}

Status CheckOutputErrors(const std::vector<OutputError>& errors,
                         const std::vector<std::string>& outputs) {
  if (errors.size() != outputs.size()) {
    return Err(StatusCode::kInvalidArgument, "{} of {} outputs were compared", errors.size(),
               outputs.size());
  }
  for (size_t i = 0; i < errors.size(); ++i) {
    const OutputError& error = errors[i];
    if (error.name != outputs[i]) {
      return Err(StatusCode::kInvalidArgument, "output {} was compared as {}", outputs[i],
                 error.name);
    }
    for (const double value : {error.max_abs, error.max_rel, error.max_elementwise}) {
      if (value >= 0) continue;  // A NaN is not.
      return Err(StatusCode::kInvalidArgument, "output {}: an error of {}", error.name, value);
    }
  }
  return OkStatus();
}

}  // namespace ag
