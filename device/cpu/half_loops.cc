#include "device/cpu/half_loops.h"

#include <bit>

#include "device/cpu/block_ops.h"
#include "device/cpu/fast_math.h"

namespace ag::cpu {
namespace {

constexpr uint32_t kInfinityBits = 0x7f800000U, kSignBit = 0x80000000U;
constexpr int kFractionShift = 13;            // A half has 10 bits of fraction, a float 23.
constexpr uint32_t kBiasChange = 112U << 23;  // 127 - 15, in the place of a float's exponent.

// All ones where the condition holds: GCC vectorizes masks, and leaves branches of such loops
// alone.
AG_INLINE uint32_t MaskIf(bool condition) { return 0U - static_cast<uint32_t>(condition); }

AG_INLINE uint32_t Either(uint32_t mask, uint32_t a, uint32_t b) {
  return (a & mask) | (b & ~mask);
}

// Subnormal halves are counted in steps of 2^-24: a product of subnormal floats is slow.
AG_CLONES void WidenF16(const uint16_t* from, float* to, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = from[i];
    const uint32_t shifted = (bits & 0x7fffU) << kFractionShift;
    const float steps = static_cast<float>(static_cast<int32_t>(bits & 0x3ffU)) * 0x1p-24F;
    const uint32_t exponent = bits & 0x7c00U;
    const uint32_t finite =
        Either(MaskIf(exponent == 0), std::bit_cast<uint32_t>(steps), shifted + kBiasChange);
    const uint32_t magnitude = Either(MaskIf(exponent == 0x7c00U), kInfinityBits | shifted, finite);
    to[i] = std::bit_cast<float>(magnitude | (bits & 0x8000U) << 16);
  }
}

AG_CLONES void NarrowF16(const float* from, uint16_t* to, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(from[i]);
    const uint32_t magnitude = bits & ~kSignBit;
    const uint32_t odd = magnitude >> kFractionShift & 1U;
    const uint32_t normal = (magnitude + 0xfffU + odd - kBiasChange) >> kFractionShift;
    // Below 2^-14 the sum with 0.5 rounds to steps of 2^-24, which then are its lowest bits.
    const float sum = std::bit_cast<float>(magnitude) + 0.5F;
    const uint32_t subnormal = std::bit_cast<uint32_t>(sum) - std::bit_cast<uint32_t>(0.5F);
    const uint32_t finite = Either(MaskIf(magnitude < 0x38800000U), subnormal, normal);
    const uint32_t large = 0x7c00U | (MaskIf(magnitude > kInfinityBits) & 0x200U);
    const uint32_t result = Either(MaskIf(magnitude >= 0x477ff000U), large, finite);  // 65520.
    to[i] = static_cast<uint16_t>(result | (bits & kSignBit) >> 16);
  }
}

AG_CLONES void WidenBF16(const uint16_t* from, float* to, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) to[i] = std::bit_cast<float>(uint32_t{from[i]} << 16);
}

AG_CLONES void NarrowBF16(const float* from, uint16_t* to, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(from[i]);
    const uint32_t rounded = (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16;
    const bool is_nan = (bits & ~kSignBit) > kInfinityBits;
    to[i] = static_cast<uint16_t>(is_nan ? bits >> 16 | 0x40U : rounded);
  }
}

}  // namespace

void WidenHalf(DType dtype, const uint16_t* from, float* to, int64_t n) {
  dtype == DType::kFloat16 ? WidenF16(from, to, n) : WidenBF16(from, to, n);
}

void NarrowToHalf(DType dtype, const float* from, uint16_t* to, int64_t n) {
  dtype == DType::kFloat16 ? NarrowF16(from, to, n) : NarrowBF16(from, to, n);
}

}  // namespace ag::cpu
