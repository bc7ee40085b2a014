// Sums over rows of numbers, for normalizations: added up in pieces of 4096 by vectors, and pieces
// in double precision. Pure functions.
#pragma once

#include <cstdint>

#include "device/cpu/block_ops.h"

namespace ag::cpu {

double SumOfRow(const float* x, int64_t n);
// Returns the sum of (x[i] - mean)^2.
double SumOfSquaresOfRow(const float* x, int64_t n, float mean);

}  // namespace ag::cpu
