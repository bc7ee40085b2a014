#include "graph/narrow.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ag {
namespace {

// A floating point type: sign, exponent, mantissa, from the highest bit.
struct NarrowFloat {
  int exponent_bits = 0, mantissa_bits = 0, bias = 0;
  double max = 0;              // The largest finite number.
  int nan = -1;                // The bits of NaN without a sign; -1: there is none.
  int infinity = -1;           // The same for infinity.
  bool unsigned_zero = false;  // The bits of -0 are NaN.
};

NarrowFloat FormatOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat8E4M3:
      return {4, 3, 7, 448, 0x7F};
    case DType::kFloat8E4M3Fnuz:
      return {4, 3, 8, 240, 0x80, -1, true};
    case DType::kFloat8E5M2:
      return {5, 2, 15, 57344, 0x7F, 0x7C};
    case DType::kFloat8E5M2Fnuz:
      return {5, 2, 16, 57344, 0x80, -1, true};
    default:
      return {2, 1, 1, 6};
  }
}

bool IsNaN(const NarrowFloat& format, int bits, int magnitude) {
  if (format.unsigned_zero) return bits == format.nan;
  return format.infinity >= 0 ? magnitude > format.infinity : magnitude == format.nan;
}

double FloatOf(const NarrowFloat& format, int bits) {
  const int sign_bit = 1 << (format.exponent_bits + format.mantissa_bits);
  const int magnitude = bits & (sign_bit - 1);
  const double sign = (bits & sign_bit) != 0 ? -1 : 1;
  if (IsNaN(format, bits, magnitude)) return std::numeric_limits<double>::quiet_NaN();
  if (magnitude == format.infinity) return sign * std::numeric_limits<double>::infinity();
  const int ones = 1 << format.mantissa_bits;
  const int exponent = magnitude >> format.mantissa_bits, mantissa = magnitude & (ones - 1);
  const int whole = exponent == 0 ? mantissa : mantissa + ones;
  return sign * std::ldexp(whole, std::max(exponent, 1) - format.bias - format.mantissa_bits);
}

// Returns the bits of a finite magnitude up to the largest one.
int BitsOf(const NarrowFloat& format, double rounded) {
  if (rounded == 0) return 0;
  const int exponent = std::max(std::ilogb(rounded), 1 - format.bias);
  const int ones = 1 << format.mantissa_bits;
  const int whole = static_cast<int>(std::ldexp(rounded, format.mantissa_bits - exponent));
  return whole < ones ? whole : ((exponent + format.bias) << format.mantissa_bits) + whole - ones;
}

int FloatBits(const NarrowFloat& format, double value, Overflow overflow) {
  const int sign_bit = 1 << (format.exponent_bits + format.mantissa_bits);
  const int sign = std::signbit(value) ? sign_bit : 0;
  if (std::isnan(value) && format.nan < 0) return BitsOf(format, format.max);
  if (std::isnan(value)) return format.unsigned_zero ? format.nan : sign | format.nan;
  double rounded = std::fabs(value);
  if (std::isfinite(rounded) && rounded > 0) {
    const int exponent = std::max(std::ilogb(rounded), 1 - format.bias);
    const int step = exponent - format.mantissa_bits;
    rounded = std::ldexp(std::nearbyint(std::ldexp(rounded, -step)), step);
  }
  if (rounded > format.max) {
    const bool saturates = overflow == Overflow::kSaturates || format.nan < 0;
    if (saturates) return sign | BitsOf(format, format.max);
    if (format.infinity >= 0) return sign | format.infinity;
    return format.unsigned_zero ? format.nan : sign | format.nan;
  }
  const int magnitude = BitsOf(format, rounded);
  return magnitude == 0 && format.unsigned_zero ? 0 : sign | magnitude;
}

}  // namespace

double NarrowToDouble(DType dtype, uint8_t bits) {
  if (dtype == DType::kUInt4) return bits & 0xF;
  if (dtype == DType::kInt4) return (bits & 0x8) != 0 ? (bits & 0xF) - 16 : bits & 0xF;
  return FloatOf(FormatOf(dtype), bits);
}

uint8_t DoubleToNarrow(DType dtype, double value, Overflow overflow) {
  if (dtype == DType::kUInt4 || dtype == DType::kInt4) {
    const double low = dtype == DType::kUInt4 ? 0 : -8, high = low + 15;
    const double whole = std::isnan(value) ? 0 : std::trunc(std::clamp(value, low, high));
    return static_cast<uint8_t>(static_cast<int>(whole));
  }
  return static_cast<uint8_t>(FloatBits(FormatOf(dtype), value, overflow));
}

}  // namespace ag
