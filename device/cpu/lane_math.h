// Elementary functions of vectors of floats (lanes.h), for loops that are written once and compiled
// for each instruction set with -ffp-contract=fast. Pure functions.
#pragma once

#include <cstdint>

#include "device/cpu/fast_math.h"
#include "device/cpu/lanes.h"

namespace ag::cpu {

// Sets `power` to 2^t for |t| <= 126 or NaN, as 2^n * 2^f with n whole and |f| <= 1/2: the
// polynomial's error is 1.1e-7 relative. By reference, since how a vector is passed by value
// depends on the instruction set.
template <int64_t lanes>
AG_INLINE void PowerOfTwo(const typename Lanes<lanes>::Vector& t,
                          typename Lanes<lanes>::Vector& power) {
  using Vector = typename Lanes<lanes>::Vector;
  using Numbers = typename Lanes<lanes>::Numbers;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer.
  const Vector shifted = t + kRound;
  const Vector f = t - (shifted - kRound);
  Vector y = f * 1.326472731307149e-3f + 9.671512991189957e-3f;
  y = y * f + 5.550733581185341e-2f;
  y = y * f + 2.4022242426872253e-1f;
  y = y * f + 6.931470036506653e-1f;
  y = y * f + 1.0f;
  // The low bits of `shifted` are n, so this is n + 127 in the place of the exponent.
  power = y * reinterpret_cast<Vector>((reinterpret_cast<Numbers>(shifted) + 127) << 23);
}

// Sets `exp` to e^x for x <= 0 or NaN: x * log2(e) adds 6e-8 |x| to the error of PowerOfTwo, 1e-8
// |x| with multiply-add. Below -87.33 it is 0, without denormals.
template <int64_t lanes>
AG_INLINE void ExpOfNegative(const typename Lanes<lanes>::Vector& x,
                             typename Lanes<lanes>::Vector& exp) {
  using Vector = typename Lanes<lanes>::Vector;
  const Vector least = Vector{} - 87.33f;
  const Vector c = x < least ? least : x;
  Vector power;
  PowerOfTwo<lanes>(c * 1.44269504088896341f, power);
  exp = x < least ? Vector{} : power;
}

}  // namespace ag::cpu
