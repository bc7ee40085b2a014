#include "graph/half.h"

#include <bit>
#include <cmath>

namespace ag {
namespace {

// Rounds a double to a float "to odd", so that a second rounding to fewer than 22 bits gives the
// result of one rounding (Boldo and Melquiond, "When double rounding is odd", 2005).
float ToFloatOdd(double value) {
  const float nearest = static_cast<float>(value);
  if (std::isnan(nearest) || static_cast<double>(nearest) == value) return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (std::isinf(nearest)) return nearest;  // Infinity also in the narrower types.
  if ((bits & 1) != 0) return nearest;
  // The even neighbour was chosen; the odd one is on the other side of `value`.
  const bool grew = std::fabs(static_cast<double>(nearest)) > std::fabs(value);
  bits = grew ? bits - 1 : bits + 1;
  return std::bit_cast<float>(bits);
}

}  // namespace

float HalfToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 31u;
  const uint32_t fraction = bits & 1023u;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
  if (exponent == 0) {
    const float tiny = std::ldexp(static_cast<float>(fraction), -24);
    return sign != 0 ? -tiny : tiny;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u;
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // 65520 and more round to infinity.
  if (magnitude < 0x38800000u) {                        // Below 2^-14: steps of 2^-24.
    const float steps = std::nearbyint(std::ldexp(std::bit_cast<float>(magnitude), 24));
    return sign | static_cast<uint16_t>(steps);
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return sign | static_cast<uint16_t>((rounded - (112u << 23)) >> 13);
}

float BFloat16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

uint16_t FloatToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

uint16_t DoubleToHalf(double value) { return FloatToHalf(ToFloatOdd(value)); }

uint16_t DoubleToBFloat16(double value) { return FloatToBFloat16(ToFloatOdd(value)); }

}  // namespace ag
