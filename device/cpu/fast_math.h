// Elementary functions as short straight-line code, so that loops over them vectorize. Worst errors
// (fast_math_test.cc checks them): exp 2e-7 and log1p 3e-7 relative, tanh and erf 5e-7 absolute.
// Pure functions.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace ag::cpu {

#define AG_INLINE inline __attribute__((always_inline))
#define AG_INLINE_LAMBDA __attribute__((always_inline))  // Behind a lambda's parameters.

// Returns exp(x) as 2^n * e^r with |r| <= ln(2)/2 and Cephes' polynomial of degree 7. Below -87.3
// it is 0, without denormals; above 88.72 infinity; NaN stays NaN.
AG_INLINE float FastExp(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer.
  const float clamped = x < -87.33f ? -87.33f : (x > 88.73f ? 88.73f : x);
  const float shifted = clamped * 1.44269504088896341f + kRound;
  const float n = shifted - kRound;
  const float r = (clamped - n * 0.693359375f) - n * -2.12194440e-4f;
  float y = 1.9875691500e-4f;
  y = y * r + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = y * (r * r) + r + 1.0f;
  // Multiplies 2^n in two factors, so that n = 128 does not overflow while y < 1.
  const int32_t k = std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRound);
  const int32_t half = k >> 1;
  const float low = std::bit_cast<float>((half + 127) << 23);
  const float high = std::bit_cast<float>((k - half + 127) << 23);
  const float result = y * low * high;
  const float bounded = x < -87.33f ? 0.0f : result;
  return x > 88.7228f ? std::numeric_limits<float>::infinity() : (x != x ? x : bounded);
}
AG_INLINE double FastExp(double x) { return std::exp(x); }

// Returns tanh(x) by a rational approximation of degree 13/6 on |x| < 7.9, beyond which float tanh
// is 1 (as in Eigen).
AG_INLINE float FastTanh(float x) {
  const float c = x < -7.90531110763549805f ? -7.90531110763549805f
                                            : (x > 7.90531110763549805f ? 7.90531110763549805f : x);
  const float s = c * c;
  float p = -2.76076847742355e-16f;
  p = p * s + 2.00018790482477e-13f;
  p = p * s + -8.60467152213735e-11f;
  p = p * s + 5.12229709037114e-08f;
  p = p * s + 1.48572235717979e-05f;
  p = p * s + 6.37261928875436e-04f;
  p = p * s + 4.89352455891786e-03f;
  float q = 1.19825839466702e-06f;
  q = q * s + 1.18534705686654e-04f;
  q = q * s + 2.26843463243900e-03f;
  q = q * s + 4.89352518554385e-03f;
  return c * p / q;
}
AG_INLINE double FastTanh(double x) { return std::tanh(x); }

// Returns erf(x) by a rational approximation of degree 13/8 on |x| < 4, beyond which float erf is 1
// (as in Eigen).
AG_INLINE float FastErf(float x) {
  const float c = x < -4.0f ? -4.0f : (x > 4.0f ? 4.0f : x);
  const float s = c * c;
  float p = -2.72614225801306e-10f;
  p = p * s + 2.77068142495902e-08f;
  p = p * s + -2.10102402082508e-06f;
  p = p * s + -5.69250639462346e-05f;
  p = p * s + -7.34990630326855e-04f;
  p = p * s + -2.95459980854025e-03f;
  p = p * s + -1.60960333262415e-02f;
  float q = -1.45660718464996e-05f;
  q = q * s + -2.13374055278905e-04f;
  q = q * s + -1.68282697438203e-03f;
  q = q * s + -7.37332916720468e-03f;
  q = q * s + -1.42647390514189e-02f;
  return c * p / q;
}
AG_INLINE double FastErf(double x) { return std::erf(x); }

// Returns log(1 + x) for x in [0, 1], by the series of 2 artanh(x / (2 + x)).
AG_INLINE float FastLog1p(float x) {
  const float s = x / (2.0f + x);
  const float z = s * s;
  float p = 1.0f / 15;
  p = p * z + 1.0f / 13;
  p = p * z + 1.0f / 11;
  p = p * z + 1.0f / 9;
  p = p * z + 1.0f / 7;
  p = p * z + 1.0f / 5;
  p = p * z + 1.0f / 3;
  p = p * z + 1.0f;
  return 2.0f * s * p;
}
AG_INLINE double FastLog1p(double x) { return std::log1p(x); }

// These forms vectorize on AVX2 as well; selects between products do not.
template <class T>
AG_INLINE T FastAbs(T x) {
  return std::abs(x);
}
template <class T>
AG_INLINE T FastHardSwish(T x) {
  const T raised = x + T(3) < T(0) ? T(0) : x + T(3);
  return x * (raised > T(6) ? T(6) : raised) / T(6);
}

}  // namespace ag::cpu
