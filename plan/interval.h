// The bootstrap interval of a median, without drawing: exact, so it needs no seed and no time.
#pragma once

#include <span>

#include "plan/measurement.h"

namespace ag {

double Median(std::span<const double> values);  // REQUIRES: not empty.

// Positions in n sorted samples between which the percentile bootstrap (Efron 1979) with endlessly
// many resamples puts the median with the given confidence.
struct OrderRanks {
  int low = 0;
  int high = 0;
};
OrderRanks BootstrapRanks(int n, double confidence);

// Median and interval. REQUIRES: not empty.
Latency MedianInterval(std::span<const double> values, double confidence);

}  // namespace ag
