// The bootstrap interval of a median in closed form: exact, without random draws. Pure functions.
#pragma once

#include <span>

#include "plan/measurement.h"

namespace ag {

double Median(std::span<const double> values);  // REQUIRES: not empty.

// The positions in n sorted samples between which the percentile bootstrap (Efron 1979) puts the
// median with the given confidence, in the limit of infinitely many resamples.
struct OrderRanks {
  int low = 0;
  int high = 0;
};
OrderRanks BootstrapRanks(int n, double confidence);

// Returns the median and its interval. REQUIRES: not empty.
Latency MedianInterval(std::span<const double> values, double confidence);

}  // namespace ag
