// Conversions between f32 and the 16-bit floats, over consecutive elements, with one result for
// every bit pattern as in graph/half.h. Vectorized for each instruction set. Pure functions.
#pragma once

#include <cstdint>

#include "graph/types.h"

namespace ag::cpu {

inline bool IsHalf(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

// Writes the n elements of `dtype` at `from` as floats. REQUIRES: IsHalf(dtype).
void WidenHalf(DType dtype, const uint16_t* from, float* to, int64_t n);

// Writes n floats as elements of `dtype`, rounded to nearest even. REQUIRES: IsHalf(dtype).
void NarrowToHalf(DType dtype, const float* from, uint16_t* to, int64_t n);

// Writes n floats as bf16 that stay finite where they are: as NarrowToHalf, but what would round to
// infinity becomes the largest number. What models add to mask a score, -3.4e38, is such a value,
// and a row of nothing else has another softmax than one of infinities.
void StoreAsBf16(const float* from, uint16_t* to, int64_t n);

// Writes what WidenHalf makes of NarrowToHalf's results. `to` may be `from`. REQUIRES:
// IsHalf(dtype).
void RoundToHalf(DType dtype, const float* from, float* to, int64_t n);

}  // namespace ag::cpu
