// The loops around products of integers: sums to results, and pictures of bytes turned so that the
// channels of a pixel lie together. Pure functions.
#pragma once

#include <cstdint>

namespace ag::cpu {

// to[i] = from[i] + offset[i] - by[i] * sum, in arithmetic that wraps. `by` may be null.
void ShiftSums(const int32_t* from, const int32_t* offset, const int32_t* by, int32_t sum,
               int32_t* to, int64_t n);

// What quantized results are: round(sum * factor) + zero, within [low, high]. Half goes to even.
// The last three are integers.
struct Requantize {
  const float* factor = nullptr;  // One for each.
  float zero = 0, low = 0, high = 0;
};
// T is uint8_t or int8_t. REQUIRES: [low, high] is within T.
template <class T>
void RequantizeSums(const int32_t* sums, const Requantize& how, T* to, int64_t n);

// to[i] = round(from[i] / scale) + zero within [low, high]; zero for NaN.
template <class T>
void QuantizeFloats(const float* from, float scale, const Requantize& how, T* to, int64_t n);

// to[i] = (from[i] - zero) * scale.
template <class T>
void DequantizeBytes(const T* from, float zero, float scale, float* to, int64_t n);

// Returns the least and the largest of the numbers and 0; NaN is passed over.
struct FloatRange {
  float low = 0, high = 0;
};
FloatRange RangeOfFloats(const float* from, int64_t n);

// How DynamicQuantizeLinear maps numbers of a range to u8.
struct DynamicBytes {
  float scale = 1, zero = 0;
};
DynamicBytes DynamicBytesOf(const FloatRange& range);

// to[i] = what DynamicQuantizeLinear and its reverse leave of from[i]; `bytes` is scratch memory.
void RoundTripBytes(const float* from, uint8_t* bytes, float* to, int64_t n);

// to[column * to_step + row] = from[row * from_step + column].
template <class T>
void TurnMatrix(const T* from, int64_t from_step, int64_t rows, int64_t columns, T* to,
                int64_t to_step);

}  // namespace ag::cpu
