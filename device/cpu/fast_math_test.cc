#include "device/cpu/fast_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

namespace ag::cpu {
namespace {

// Returns the largest error from `low` to `high`; relative when `relative`.
double WorstError(float (*fast)(float), const std::function<double(double)>& exact, float low,
                  float high, bool relative) {
  double worst = 0;
  constexpr int kSteps = 400'000;
  for (int i = 0; i <= kSteps; ++i) {
    const float x = low + (high - low) * static_cast<float>(i) / kSteps;
    const double expected = exact(x);
    const double error = std::abs(fast(x) - expected);
    worst = std::max(worst, relative ? error / std::abs(expected) : error);
  }
  return worst;
}

float Exp(float x) { return FastExp(x); }
float Log1p(float x) { return FastLog1p(x); }
float Tanh(float x) { return FastTanh(x); }
float Erf(float x) { return FastErf(x); }

TEST(FastMath, ErrorsStayBelowTheirBounds) {
  const auto exp = [](double x) { return std::exp(x); };
  const auto log1p = [](double x) { return std::log1p(x); };
  const auto tanh = [](double x) { return std::tanh(x); };
  const auto erf = [](double x) { return std::erf(x); };
  EXPECT_LT(WorstError(Exp, exp, -87, 88.7f, true), 2e-7);
  EXPECT_LT(WorstError(Log1p, log1p, 1e-6f, 1, true), 3e-7);
  EXPECT_LT(WorstError(Tanh, tanh, -12, 12, false), 5e-7);
  EXPECT_LT(WorstError(Erf, erf, -6, 6, false), 5e-7);
}

TEST(FastMath, EndsOfTheRange) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  EXPECT_EQ(FastExp(0.0f), 1.0f);
  EXPECT_EQ(FastExp(100.0f), inf);
  EXPECT_EQ(FastExp(inf), inf);
  EXPECT_EQ(FastExp(-200.0f), 0.0f);
  EXPECT_EQ(FastExp(-inf), 0.0f);
  EXPECT_TRUE(std::isnan(FastExp(nan)));
  EXPECT_EQ(FastLog1p(0.0f), 0.0f);
  EXPECT_TRUE(std::isnan(FastLog1p(nan)));
  EXPECT_TRUE(std::isnan(FastTanh(nan)));
  EXPECT_TRUE(std::isnan(FastErf(nan)));
}

}  // namespace
}  // namespace ag::cpu
