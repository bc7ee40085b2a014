#include "device/cpu/row_sums.h"

#include <algorithm>

namespace ag::cpu {
namespace {

constexpr int64_t kPiece = 4096;

AG_CLONES float SumOfPiece(const float* x, int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

AG_CLONES float SumOfSquaresOfPiece(const float* x, int64_t n, float mean) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += (x[i] - mean) * (x[i] - mean);
  return sum;
}

}  // namespace

double SumOfRow(const float* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i += kPiece) sum += SumOfPiece(x + i, std::min(kPiece, n - i));
  return sum;
}

double SumOfSquaresOfRow(const float* x, int64_t n, float mean) {
  double sum = 0;
  for (int64_t i = 0; i < n; i += kPiece) {
    sum += SumOfSquaresOfPiece(x + i, std::min(kPiece, n - i), mean);
  }
  return sum;
}

}  // namespace ag::cpu
