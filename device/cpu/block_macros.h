// How a loop of block_ops.h is written: BLOCK, and the functions that it may call. For the files
// that define such loops.
#pragma once

#include <cmath>
#include <type_traits>

#include "device/cpu/block_ops.h"
#include "device/cpu/fast_math.h"

// BLOCK(Name, expression of x, y, z, p, q) makes NameF for float and NameD for double.
#define BLOCK_FOR(name, T, clones, ...)                                               \
  clones void name(const T* a, const T* b, const T* c, T* out, int64_t n, T p, T q) { \
    (void)p;                                                                          \
    (void)q;                                                                          \
    _Pragma("omp simd") for (int64_t i = 0; i < n; ++i) {                             \
      [[maybe_unused]] const T x = a[i];                                              \
      [[maybe_unused]] const T y = b[i];                                              \
      [[maybe_unused]] const T z = c[i];                                              \
      out[i] = static_cast<T>(__VA_ARGS__);                                           \
    }                                                                                 \
  }
#define BLOCK(Name, ...)                            \
  BLOCK_FOR(Name##F, float, AG_CLONES, __VA_ARGS__) \
  BLOCK_FOR(Name##D, double, , __VA_ARGS__)

namespace ag::cpu {

// The functions of the operator table; those of fast_math.h take the place of C's.
namespace functions {

template <class T>
AG_INLINE T Log1p(T x) {
  return FastLog1p(x);
}
#define MATH(Name, word)                         \
  template <class T>                             \
  AG_INLINE T Name(T x) {                        \
    if constexpr (requires { Fast##Name(x); }) { \
      return Fast##Name(x);                      \
    } else {                                     \
      return std::word(x);                       \
    }                                            \
  }
#define FUNCTION(Name, parameters, arguments, ...)      \
  template <class T>                                    \
  AG_INLINE T Name parameters {                         \
    if constexpr (requires { Fast##Name arguments; }) { \
      return Fast##Name arguments;                      \
    } else {                                            \
      return __VA_ARGS__;                               \
    }                                                   \
  }
#include "graph/functions.def"

}  // namespace functions

template <class T>
struct Pick {
  static BlockFn<T> Of(BlockFn<float> f, BlockFn<double> d) {
    if constexpr (std::is_same_v<T, float>) {
      return f;
    } else {
      return d;
    }
  }
};
#define PICK(Name) Pick<T>::Of(Name##F, Name##D)

}  // namespace ag::cpu
