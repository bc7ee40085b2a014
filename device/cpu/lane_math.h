// Elementary functions of vectors of floats (lanes.h), for loops that are written once and compiled
// for each instruction set with -ffp-contract=fast. Pure functions.
#pragma once

#include <bit>
#include <cstdint>

#include "device/cpu/fast_math.h"
#include "device/cpu/lanes.h"

namespace ag::cpu {

// Sets `exp` to e^x for x <= 0, by the polynomial of FastExp; its relative error is below 3e-7.
// Below -87.3 it is 0, without denormals; NaN stays NaN. By reference, since how a vector is passed
// by value depends on the instruction set.
template <int64_t lanes>
AG_INLINE void ExpOfNegative(const typename Lanes<lanes>::Vector& x,
                             typename Lanes<lanes>::Vector& exp) {
  using Vector = typename Lanes<lanes>::Vector;
  using Numbers = typename Lanes<lanes>::Numbers;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer.
  constexpr float kLeast = -87.33f;
  const Vector clamped = x < kLeast ? Vector{} + kLeast : x;
  const Vector shifted = clamped * 1.44269504088896341f + kRound;
  const Vector n = shifted - kRound;
  const Vector r = (clamped - n * 0.693359375f) - n * -2.12194440e-4f;
  Vector y = Vector{} + 1.9875691500e-4f;
  y = y * r + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = y * (r * r) + r + 1.0f;
  const Numbers k = reinterpret_cast<Numbers>(shifted) - std::bit_cast<int32_t>(kRound);
  const Vector result = y * reinterpret_cast<Vector>((k + 127) << 23);
  exp = x < kLeast ? Vector{} : result;
}

}  // namespace ag::cpu
