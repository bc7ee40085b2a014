// Conversions between float and the two 16-bit floating point types, by bits. They round to nearest
// even; NaN stays NaN. Pure functions.
#pragma once

#include <cstdint>

namespace ag {

float HalfToFloat(uint16_t bits);
uint16_t FloatToHalf(float value);
float BFloat16ToFloat(uint16_t bits);
uint16_t FloatToBFloat16(float value);

// Convert from double with one rounding; a way through float would round twice.
uint16_t DoubleToHalf(double value);
uint16_t DoubleToBFloat16(double value);

}  // namespace ag
