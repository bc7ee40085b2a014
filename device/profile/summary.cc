// Latencies from samples, and verdicts from ratios.
#include <cmath>

#include "device/profile/profile.h"
#include "plan/interval.h"

namespace ag {

Latency Summarize(std::span<const double> samples_ns) {
  for (const double sample : samples_ns) AG_CHECK(std::isfinite(sample) && sample > 0);
  return MedianInterval(samples_ns, 0.95);
}

Verdict Judge(double ratio_low, double ratio_high, double effect_min) {
  const double above = 1 + effect_min, below = 1 / (1 + effect_min);
  if (ratio_low > above) return Verdict::kFaster;
  if (ratio_high < below) return Verdict::kSlower;
  if (ratio_low >= below && ratio_high <= above) return Verdict::kSame;
  return Verdict::kAmbiguous;
}

}  // namespace ag
