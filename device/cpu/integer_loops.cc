#include "device/cpu/integer_loops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "device/cpu/block_ops.h"
#include "device/cpu/fast_math.h"

namespace ag::cpu {
namespace {

// Adding it rounds a number of less than 2^22 to an integer, half to even; the integer is then in
// the low bits. Loops with a conversion of floats to bytes are not vectorized, with this they are.
constexpr float kRoundHalfEven = 12582912.0f;  // 1.5 * 2^23.

AG_INLINE int32_t Rounded(float x, float low, float high) {
  const float raised = x < low ? low : x;
  const float bounded = raised > high ? high : raised;
  return std::bit_cast<int32_t>(bounded + kRoundHalfEven) - std::bit_cast<int32_t>(kRoundHalfEven);
}

AG_CLONES void ShiftAll(const int32_t* from, const int32_t* offset, int32_t* to, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    to[i] = static_cast<int32_t>(static_cast<uint32_t>(from[i]) + static_cast<uint32_t>(offset[i]));
  }
}

AG_CLONES void ShiftAllBy(const int32_t* from, const int32_t* offset, const int32_t* by,
                          int32_t sum, int32_t* to, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    to[i] = static_cast<int32_t>(static_cast<uint32_t>(from[i]) + static_cast<uint32_t>(offset[i]) -
                                 static_cast<uint32_t>(by[i]) * static_cast<uint32_t>(sum));
  }
}

// A function for each instruction set has no templates: one for u8, one for i8.
#define AG_BYTE_LOOPS(Name, T)                                                                     \
  AG_CLONES void Requantize##Name(const int32_t* sums, const float* factor, float zero, float low, \
                                  float high, T* to, int64_t n) {                                  \
    const auto whole = static_cast<int32_t>(zero);                                                 \
    _Pragma("omp simd") for (int64_t i = 0; i < n; ++i) {                                          \
      const float x = static_cast<float>(sums[i]) * factor[i];                                     \
      to[i] = static_cast<T>(Rounded(x, low - zero, high - zero) + whole);                         \
    }                                                                                              \
  }                                                                                                \
  AG_CLONES void Quantize##Name(const float* from, float scale, float zero, float low, float high, \
                                T* to, int64_t n) {                                                \
    const auto whole = static_cast<int32_t>(zero);                                                 \
    _Pragma("omp simd") for (int64_t i = 0; i < n; ++i) {                                          \
      const float x = from[i] / scale;                                                             \
      to[i] = static_cast<T>(Rounded(x, low - zero, high - zero) + whole);                         \
    }                                                                                              \
  }                                                                                                \
  AG_CLONES void Dequantize##Name(const T* from, float zero, float scale, float* to, int64_t n) {  \
    _Pragma("omp simd") for (int64_t i = 0; i < n; ++i) {                                          \
      to[i] = (static_cast<float>(from[i]) - zero) * scale;                                        \
    }                                                                                              \
  }
AG_BYTE_LOOPS(Unsigned, uint8_t)
AG_BYTE_LOOPS(Signed, int8_t)

AG_CLONES void RangeOfAll(const float* from, int64_t n, float* low, float* high) {
  float least = *low, most = *high;
#pragma omp simd reduction(min : least) reduction(max : most)
  for (int64_t i = 0; i < n; ++i) {
    least = from[i] < least ? from[i] : least;
    most = from[i] > most ? from[i] : most;
  }
  *low = least;
  *high = most;
}

}  // namespace

void ShiftSums(const int32_t* from, const int32_t* offset, const int32_t* by, int32_t sum,
               int32_t* to, int64_t n) {
  by == nullptr ? ShiftAll(from, offset, to, n) : ShiftAllBy(from, offset, by, sum, to, n);
}

template <>
void RequantizeSums(const int32_t* sums, const Requantize& how, uint8_t* to, int64_t n) {
  RequantizeUnsigned(sums, how.factor, how.zero, how.low, how.high, to, n);
}
template <>
void RequantizeSums(const int32_t* sums, const Requantize& how, int8_t* to, int64_t n) {
  RequantizeSigned(sums, how.factor, how.zero, how.low, how.high, to, n);
}
template <>
void QuantizeFloats(const float* from, float scale, const Requantize& how, uint8_t* to, int64_t n) {
  QuantizeUnsigned(from, scale, how.zero, how.low, how.high, to, n);
}
template <>
void QuantizeFloats(const float* from, float scale, const Requantize& how, int8_t* to, int64_t n) {
  QuantizeSigned(from, scale, how.zero, how.low, how.high, to, n);
}
template <>
void DequantizeBytes(const uint8_t* from, float zero, float scale, float* to, int64_t n) {
  DequantizeUnsigned(from, zero, scale, to, n);
}
template <>
void DequantizeBytes(const int8_t* from, float zero, float scale, float* to, int64_t n) {
  DequantizeSigned(from, zero, scale, to, n);
}

FloatRange RangeOfFloats(const float* from, int64_t n) {
  FloatRange range;
  RangeOfAll(from, n, &range.low, &range.high);
  return range;
}

DynamicBytes DynamicBytesOf(const FloatRange& range) {
  const float scale = range.high != range.low ? (range.high - range.low) / 255.0F : 1.0F;
  return {scale, std::nearbyint(std::clamp(-range.low / scale, 0.0F, 255.0F))};
}

void RoundTripBytes(const float* from, uint8_t* bytes, float* to, int64_t n) {
  const DynamicBytes how = DynamicBytesOf(RangeOfFloats(from, n));
  QuantizeFloats(from, how.scale, {nullptr, how.zero, 0, 255}, bytes, n);
  DequantizeBytes(bytes, how.zero, how.scale, to, n);
}

namespace {

// A square of bytes that 16 vectors hold.
constexpr int64_t kTurnedSide = 16;
using TurnedRow = uint8_t __attribute__((vector_size(16)));

// Four times, row i and row i + 8 become rows 2 i and 2 i + 1, element by element in turn: that
// moves the highest bit of the row's number to the lowest one of the column's.
void TurnSquare(const uint8_t* from, int64_t from_step, uint8_t* to, int64_t to_step) {
  TurnedRow rows[kTurnedSide], next[kTurnedSide];
  for (int64_t i = 0; i < kTurnedSide; ++i) std::memcpy(&rows[i], from + i * from_step, 16);
  for (int round = 0; round < 4; ++round) {
#pragma GCC unroll 8
    for (int64_t i = 0; i < kTurnedSide / 2; ++i) {
      next[2 * i] = __builtin_shufflevector(rows[i], rows[i + 8], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20,
                                            5, 21, 6, 22, 7, 23);
      next[2 * i + 1] = __builtin_shufflevector(rows[i], rows[i + 8], 8, 24, 9, 25, 10, 26, 11, 27,
                                                12, 28, 13, 29, 14, 30, 15, 31);
    }
    std::copy_n(next, kTurnedSide, rows);
  }
  for (int64_t i = 0; i < kTurnedSide; ++i) std::memcpy(to + i * to_step, &rows[i], 16);
}

}  // namespace

template <class T>
void TurnMatrix(const T* from, int64_t from_step, int64_t rows, int64_t columns, T* to,
                int64_t to_step) {
  // Squares that stay in the nearest cache on both sides.
  for (int64_t r = 0; r < rows; r += kTurnedSide) {
    const int64_t r_end = std::min(r + kTurnedSide, rows);
    for (int64_t c = 0; c < columns; c += kTurnedSide) {
      const int64_t c_end = std::min(c + kTurnedSide, columns);
      if constexpr (sizeof(T) == 1) {
        if (r + kTurnedSide == r_end && c + kTurnedSide == c_end) {
          TurnSquare(from + r * from_step + c, from_step, to + c * to_step + r, to_step);
          continue;
        }
      }
      for (int64_t i = r; i < r_end; ++i) {
        for (int64_t j = c; j < c_end; ++j) to[j * to_step + i] = from[i * from_step + j];
      }
    }
  }
}
template void TurnMatrix(const uint8_t*, int64_t, int64_t, int64_t, uint8_t*, int64_t);
template void TurnMatrix(const int32_t*, int64_t, int64_t, int64_t, int32_t*, int64_t);

}  // namespace ag::cpu
