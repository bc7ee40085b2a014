// What loops that are written once and compiled for several instruction sets share. Such a loop is
// an AG_INLINE template that functions with these marks call; its file is compiled with
// -ffp-contract=fast (CMakeLists.txt).
#pragma once

#include <cstdint>
#include <string_view>

#define AG_AVX512 __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,fma")))
#define AG_AVX2 __attribute__((target("avx2,fma")))

namespace ag::cpu {

// A vector of so many floats, one that lies anywhere in memory, and one of as many integers.
template <int64_t lanes>
struct Lanes;
template <>
struct Lanes<16> {
  using Vector = float __attribute__((vector_size(64)));
  using Loose = float __attribute__((vector_size(64), aligned(4)));
  using Numbers = int32_t __attribute__((vector_size(64)));
};
template <>
struct Lanes<8> {
  using Vector = float __attribute__((vector_size(32)));
  using Loose = float __attribute__((vector_size(32), aligned(4)));
  using Numbers = int32_t __attribute__((vector_size(32)));
};
template <>
struct Lanes<4> {
  using Vector = float __attribute__((vector_size(16)));
  using Loose = float __attribute__((vector_size(16), aligned(4)));
  using Numbers = int32_t __attribute__((vector_size(16)));
};

// Returns what belongs to an instruction set of InstructionSet(): "avx512", "avx2", or any other.
template <class T>
const T& ForInstructionSet(std::string_view isa, const T& avx512, const T& avx2, const T& any) {
  if (isa == "avx512") return avx512;
  return isa == "avx2" && __builtin_cpu_supports("fma") != 0 ? avx2 : any;
}

}  // namespace ag::cpu
