#include "plan/measurement.h"

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

Status CheckMeasurement(const Measurement& m) {
  for (const double ns : {m.latency.median_ns, m.latency.low_ns, m.latency.high_ns}) {
    if (!std::isfinite(ns) || ns <= 0) {
      return Err(StatusCode::kInvalidArgument, "measurement: a time of {} ns", ns);
    }
  }
  if (m.latency.low_ns > m.latency.median_ns || m.latency.high_ns < m.latency.median_ns) {
    return Err(StatusCode::kInvalidArgument, "measurement: median {} ns outside [{}, {}]",
               m.latency.median_ns, m.latency.low_ns, m.latency.high_ns);
  }
  if (m.active_cores < 0) {
    return Err(StatusCode::kInvalidArgument, "measurement: {} active cores", m.active_cores);
  }
  return OkStatus();
}

}  // namespace ag
