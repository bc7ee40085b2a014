// What loops that are written once and compiled for several instruction sets share. Such a loop is
// an AG_INLINE template that functions with these marks call; its file is compiled with
// -ffp-contract=fast (CMakeLists.txt).
#pragma once

#include <cstdint>
#include <string_view>

#include "device/cpu/fast_math.h"

#define AG_AVX512 __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,fma")))
#define AG_AVX2 __attribute__((target("avx2,fma")))

namespace ag::cpu {

// A vector of so many floats, one that lies anywhere in memory, those of as many integers, and one
// of as many bf16 anywhere in memory.
template <int64_t lanes>
struct Lanes;
template <>
struct Lanes<16> {
  using Vector = float __attribute__((vector_size(64)));
  using Loose = float __attribute__((vector_size(64), aligned(4)));
  using Numbers = int32_t __attribute__((vector_size(64)));
  using Bits = uint32_t __attribute__((vector_size(64)));
  using Halves = uint16_t __attribute__((vector_size(32), aligned(2)));
};
template <>
struct Lanes<8> {
  using Vector = float __attribute__((vector_size(32)));
  using Loose = float __attribute__((vector_size(32), aligned(4)));
  using Numbers = int32_t __attribute__((vector_size(32)));
  using Bits = uint32_t __attribute__((vector_size(32)));
  using Halves = uint16_t __attribute__((vector_size(16), aligned(2)));
};
template <>
struct Lanes<4> {
  using Vector = float __attribute__((vector_size(16)));
  using Loose = float __attribute__((vector_size(16), aligned(4)));
  using Numbers = int32_t __attribute__((vector_size(16)));
  using Bits = uint32_t __attribute__((vector_size(16)));
  using Halves = uint16_t __attribute__((vector_size(8), aligned(2)));
};

// Reads a vector from anywhere in memory, of floats or of bf16. By reference, since how a vector is
// passed by value depends on the instruction set.
template <int64_t lanes>
AG_INLINE void LoadLanes(const float* from, typename Lanes<lanes>::Vector* to) {
  *to = *reinterpret_cast<const typename Lanes<lanes>::Loose*>(from);
}
template <int64_t lanes>
AG_INLINE void LoadLanes(const uint16_t* from, typename Lanes<lanes>::Vector* to) {
  using L = Lanes<lanes>;
  const auto& halves = *reinterpret_cast<const typename L::Halves*>(from);
  *to =
      reinterpret_cast<typename L::Vector>(__builtin_convertvector(halves, typename L::Bits) << 16);
}

// Writes a vector to anywhere in memory, as floats or rounded to bf16 as NarrowToHalf does
// (half_loops.h).
template <int64_t lanes>
AG_INLINE void StoreLanes(const typename Lanes<lanes>::Vector& from, float* to) {
  *reinterpret_cast<typename Lanes<lanes>::Loose*>(to) = from;
}
template <int64_t lanes>
AG_INLINE void StoreLanes(const typename Lanes<lanes>::Vector& from, uint16_t* to) {
  using L = Lanes<lanes>;
  using Bits = typename L::Bits;
  const auto bits = reinterpret_cast<Bits>(from);
  const Bits rounded = (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16;
  const Bits result = (bits & 0x7fffffffU) > 0x7f800000U ? bits >> 16 | 0x40U : rounded;
  *reinterpret_cast<typename L::Halves*>(to) = __builtin_convertvector(result, typename L::Halves);
}

// Replaces x by x * min(max(x + 3, 0), 6) / 6. NaN stays NaN.
template <int64_t lanes>
AG_INLINE void HardSwishLanes(typename Lanes<lanes>::Vector* x) {
  using V = typename Lanes<lanes>::Vector;
  const V zero{}, six = zero + 6.0f, raised = *x + 3.0f;
  const V low = raised < zero ? zero : raised;
  *x *= (low > six ? six : low) * (1.0f / 6);
}

// Computes RegisterOps of x. The bounds are given as vectors, so that a loop makes them once.
template <int64_t lanes>
AG_INLINE void ApplyOps(const typename Lanes<lanes>::Vector& low,
                        const typename Lanes<lanes>::Vector& high, bool is_hard_swish,
                        typename Lanes<lanes>::Vector* x) {
  *x = *x < low ? low : *x;
  *x = *x > high ? high : *x;
  if (is_hard_swish) HardSwishLanes<lanes>(x);
}

// Returns what belongs to an instruction set of InstructionSet(): "avx512", "avx2", or any other.
template <class T>
const T& ForInstructionSet(std::string_view isa, const T& avx512, const T& avx2, const T& any) {
  if (isa == "avx512") return avx512;
  return isa == "avx2" && __builtin_cpu_supports("fma") != 0 ? avx2 : any;
}

}  // namespace ag::cpu
