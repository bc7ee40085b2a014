#include "base/random.h"

#include <cmath>

#include "base/status.h"

namespace ag {
namespace {

// Returns the natural logarithm, with additions, products and quotients only: libm's last bit
// differs between versions and CPUs. ln m = 2 artanh((m - 1) / (m + 1)). For m in [sqrt(1/2),
// sqrt(2)) the ratio of the series is below 0.0295, so 12 terms leave an error below 1e-18.
// REQUIRES: x is normal, > 0.
double Ln(double x) {
  constexpr double kLn2 = 0.69314718055994530942;
  constexpr double kSqrtHalf = 0.70710678118654752440;
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < kSqrtHalf) {
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1);
  const double square = s * s;
  double sum = 0;
  for (int k = 23; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
  return exponent * kLn2 + 2 * s * sum;
}

}  // namespace

uint64_t Random::Next() {
  state_ += 0x9e3779b97f4a7c15;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

uint64_t Random::Below(uint64_t n) {
  AG_CHECK(n > 0);
  const uint64_t skipped =
      -n % n;  // 2^64 mod n: without these lowest values all remainders are equally likely.
  uint64_t value = Next();
  while (value < skipped) value = Next();
  return value % n;
}

int64_t Random::Between(int64_t low, int64_t high) {
  AG_CHECK(low <= high);
  const uint64_t count = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
  const uint64_t offset = count == 0 ? Next() : Below(count);  // 0: all 2^64 values.
  return static_cast<int64_t>(static_cast<uint64_t>(low) + offset);
}

double Random::Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

double Random::Normal() {
  for (;;) {
    const double x = 2 * Unit() - 1;
    const double y = 2 * Unit() - 1;
    const double square = x * x + y * y;
    if (square > 0 && square < 1) return x * std::sqrt(-2 * Ln(square) / square);
  }
}

}  // namespace ag
