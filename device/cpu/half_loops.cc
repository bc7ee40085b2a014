#include "device/cpu/half_loops.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <bit>

#include "device/cpu/block_ops.h"
#include "device/cpu/fast_math.h"
#include "device/cpu/host.h"
#include "device/cpu/lanes.h"

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
AG_INLINE float WidenedF16(uint32_t bits) {
  const uint32_t shifted = (bits & 0x7fffU) << kFractionShift;
  const float steps = static_cast<float>(static_cast<int32_t>(bits & 0x3ffU)) * 0x1p-24F;
  const uint32_t exponent = bits & 0x7c00U;
  const uint32_t finite =
      Either(MaskIf(exponent == 0), std::bit_cast<uint32_t>(steps), shifted + kBiasChange);
  const uint32_t magnitude = Either(MaskIf(exponent == 0x7c00U), kInfinityBits | shifted, finite);
  return std::bit_cast<float>(magnitude | (bits & 0x8000U) << 16);
}

AG_INLINE uint32_t NarrowedF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & ~kSignBit;
  const uint32_t odd = magnitude >> kFractionShift & 1U;
  const uint32_t normal = (magnitude + 0xfffU + odd - kBiasChange) >> kFractionShift;
  // Below 2^-14 the sum with 0.5 rounds to steps of 2^-24, which then are its lowest bits.
  const float sum = std::bit_cast<float>(magnitude) + 0.5F;
  const uint32_t subnormal = std::bit_cast<uint32_t>(sum) - std::bit_cast<uint32_t>(0.5F);
  const uint32_t finite = Either(MaskIf(magnitude < 0x38800000U), subnormal, normal);
  const uint32_t large = 0x7c00U | (MaskIf(magnitude > kInfinityBits) & 0x200U);
  const uint32_t result = Either(MaskIf(magnitude >= 0x477ff000U), large, finite);  // 65520.
  return result | (bits & kSignBit) >> 16;
}

AG_INLINE uint32_t NarrowedBF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16;
  return Either(MaskIf((bits & ~kSignBit) > kInfinityBits), bits >> 16 | 0x40U, rounded);
}

// What would round to infinity is cut.
AG_INLINE uint32_t StoredBF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & ~kSignBit;
  const uint32_t rounding = MaskIf(magnitude < 0x7f7f8000U) & (0x7fffU + (bits >> 16 & 1U));
  return (bits + rounding) >> 16 | (MaskIf(magnitude > kInfinityBits) & 0x40U);
}

AG_INLINE float WidenedBF16(uint32_t bits) { return std::bit_cast<float>(bits << 16); }

AG_CLONES void WidenF16(const uint16_t* from, float* to, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) to[i] = WidenedF16(from[i]);
}

AG_CLONES void NarrowF16(const float* from, uint16_t* to, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<uint16_t>(NarrowedF16(from[i]));
}

AG_CLONES void RoundF16(const float* from, float* to, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) to[i] = WidenedF16(NarrowedF16(from[i]));
}

AG_CLONES void WidenBF16(const uint16_t* from, float* to, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) to[i] = WidenedBF16(from[i]);
}

AG_CLONES void NarrowBF16(const float* from, uint16_t* to, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<uint16_t>(NarrowedBF16(from[i]));
}

AG_CLONES void StoreBF16(const float* from, uint16_t* to, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<uint16_t>(StoredBF16(from[i]));
}

AG_CLONES void RoundBF16(const float* from, float* to, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) to[i] = WidenedBF16(NarrowedBF16(from[i]));
}

#if defined(__x86_64__)

// With all of AVX-512: the clones have its first part, which lacks vectors of 16-bit numbers.
AG_AVX512 void StoreByAvx512(const float* from, uint16_t* to, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<uint16_t>(StoredBF16(from[i]));
}

#define AG_F16C __attribute__((target("avx2,f16c")))

// Calls run(i) for blocks of eight elements. `plain` takes a block in which `is_nan` finds a NaN,
// of which the instructions keep other bits than we do, and the elements behind the last block.
template <class IsNan, class Run, class Plain>
AG_F16C AG_INLINE void EachEight(int64_t n, const IsNan& is_nan, const Run& run,
                                 const Plain& plain) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    if (is_nan(i)) {
      plain(i, 8);
    } else {
      run(i);
    }
  }
  if (i < n) plain(i, n - i);
}

AG_F16C AG_INLINE bool HasNan(const float* from) {
  const __m256 values = _mm256_loadu_ps(from);
  return _mm256_movemask_ps(_mm256_cmp_ps(values, values, _CMP_UNORD_Q)) != 0;
}

AG_F16C AG_INLINE __m128i Halves(const float* from) {
  return _mm256_cvtps_ph(_mm256_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

AG_F16C void WidenByF16c(const uint16_t* from, float* to, int64_t n) {
  const auto load = [&](int64_t i) AG_F16C {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
  };
  const auto is_nan = [&](int64_t i) AG_F16C {
    const __m128i magnitude = _mm_and_si128(load(i), _mm_set1_epi16(0x7fff));
    return _mm_movemask_epi8(_mm_cmpgt_epi16(magnitude, _mm_set1_epi16(0x7c00))) != 0;
  };
  EachEight(
      n, is_nan, [&](int64_t i) AG_F16C { _mm256_storeu_ps(to + i, _mm256_cvtph_ps(load(i))); },
      [&](int64_t i, int64_t count) { WidenF16(from + i, to + i, count); });
}

AG_F16C void NarrowByF16c(const float* from, uint16_t* to, int64_t n) {
  EachEight(
      n, [&](int64_t i) AG_F16C { return HasNan(from + i); },
      [&](int64_t i)
          AG_F16C { _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), Halves(from + i)); },
      [&](int64_t i, int64_t count) { NarrowF16(from + i, to + i, count); });
}

AG_F16C void RoundByF16c(const float* from, float* to, int64_t n) {
  EachEight(
      n, [&](int64_t i) AG_F16C { return HasNan(from + i); },
      [&](int64_t i) AG_F16C { _mm256_storeu_ps(to + i, _mm256_cvtph_ps(Halves(from + i))); },
      [&](int64_t i, int64_t count) { RoundF16(from + i, to + i, count); });
}

// Every processor with AVX2 has F16C.
bool HasF16c() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}

#else

bool HasF16c() { return false; }
const auto StoreByAvx512 = StoreBF16;
const auto WidenByF16c = WidenF16;
const auto NarrowByF16c = NarrowF16;
const auto RoundByF16c = RoundF16;

#endif

}  // namespace

void WidenHalf(DType dtype, const uint16_t* from, float* to, int64_t n) {
  if (dtype == DType::kBFloat16) return WidenBF16(from, to, n);
  HasF16c() ? WidenByF16c(from, to, n) : WidenF16(from, to, n);
}

void NarrowToHalf(DType dtype, const float* from, uint16_t* to, int64_t n) {
  if (dtype == DType::kBFloat16) return NarrowBF16(from, to, n);
  HasF16c() ? NarrowByF16c(from, to, n) : NarrowF16(from, to, n);
}

void StoreAsBf16(const float* from, uint16_t* to, int64_t n) {
  using Store = void (*)(const float*, uint16_t*, int64_t);
  static const Store store =
      ForInstructionSet<Store>(InstructionSet(), StoreByAvx512, StoreBF16, StoreBF16);
  store(from, to, n);
}

void RoundToHalf(DType dtype, const float* from, float* to, int64_t n) {
  if (dtype == DType::kBFloat16) return RoundBF16(from, to, n);
  HasF16c() ? RoundByF16c(from, to, n) : RoundF16(from, to, n);
}

}  // namespace ag::cpu
