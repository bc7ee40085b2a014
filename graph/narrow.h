// Numbers of the narrow types: floating point of 8 and 4 bits, integers of 4 bits. An element is
// one byte: f4 in its low bits, an integer as an integer of 8 bits. Pure functions.
#pragma once

#include <cstdint>

#include "graph/types.h"

namespace ag {

// What becomes of a number beyond the largest finite one: that one; or infinity, or NaN where the
// type has none (f8 types only).
enum class Overflow { kSaturates, kOverflows };

// REQUIRES: IsNarrow(dtype).
double NarrowToDouble(DType dtype, uint8_t bits);
// Rounds to nearest even (f8, f4), or truncates toward zero (i4, u4); NaN stays NaN where the type
// has it, else it becomes the largest number (f4) or 0.
uint8_t DoubleToNarrow(DType dtype, double value, Overflow overflow);

}  // namespace ag
