#include "device/cpu/softmax_loops.h"

#include <cstring>
#include <limits>

#include "device/cpu/fast_math.h"
#include "device/cpu/lane_math.h"
#include "device/cpu/lanes.h"

namespace ag::cpu {
namespace {

// Vectors that are computed side by side: a polynomial waits for itself.
constexpr int64_t kBeside = 4;

// Halves a vector until four lanes are left.
template <int64_t lanes>
AG_INLINE float SumOf(const typename Lanes<lanes>::Vector& v) {
  if constexpr (lanes == 4) {
    return (v[0] + v[1]) + (v[2] + v[3]);
  } else {
    const auto* half = reinterpret_cast<const typename Lanes<lanes / 2>::Vector*>(&v);
    return SumOf<lanes / 2>(half[0] + half[1]);
  }
}
template <int64_t lanes>
AG_INLINE float MostOf(const typename Lanes<lanes>::Vector& v) {
  if constexpr (lanes == 4) {
    const float a = v[0] > v[1] ? v[0] : v[1], b = v[2] > v[3] ? v[2] : v[3];
    return a > b ? a : b;
  } else {
    const auto* half = reinterpret_cast<const typename Lanes<lanes / 2>::Vector*>(&v);
    return MostOf<lanes / 2>(half[0] > half[1] ? half[0] : half[1]);
  }
}

template <int64_t lanes>
struct Row {
  using Vector = typename Lanes<lanes>::Vector;
  using Loose = typename Lanes<lanes>::Loose;
  using Numbers = typename Lanes<lanes>::Numbers;

  static AG_INLINE const Loose& At(const float* x) { return *reinterpret_cast<const Loose*>(x); }
  static AG_INLINE Loose& At(float* y) { return *reinterpret_cast<Loose*>(y); }

  static AG_INLINE float MaxOf(const float* x, int64_t n, const Vector& last) {
    Vector most[kBeside] = {last, last, last, last};
    int64_t i = 0;
    for (; i + kBeside * lanes <= n; i += kBeside * lanes) {
#pragma GCC unroll 4
      for (int64_t k = 0; k < kBeside; ++k) {
        const Vector v = At(x + i + k * lanes);
        most[k] = most[k] > v ? most[k] : v;
      }
    }
    for (; i + lanes <= n; i += lanes) {
      const Vector v = At(x + i);
      most[0] = most[0] > v ? most[0] : v;
    }
    const Vector a = most[0] > most[1] ? most[0] : most[1];
    const Vector b = most[2] > most[3] ? most[2] : most[3];
    return MostOf<lanes>(a > b ? a : b);
  }

  // What is left of the row behind its whole vectors is computed in the row's last `lanes`
  // elements; those of them that were computed before are left out of the sum. They are read first,
  // since y may be x. REQUIRES: n >= lanes.
  static AG_INLINE void Softmax(const float* x, float* y, int64_t n, const Numbers& numbers) {
    const Vector last = At(x + n - lanes);
    const float most = MaxOf(x, n, last);
    Vector sums[kBeside] = {};
    int64_t i = 0;
    for (; i + kBeside * lanes <= n; i += kBeside * lanes) {
#pragma GCC unroll 4
      for (int64_t k = 0; k < kBeside; ++k) {
        Vector v = At(x + i + k * lanes) - most;
        ExpOfNegative<lanes>(v, v);
        sums[k] += v;
        At(y + i + k * lanes) = v;
      }
    }
    for (; i + lanes <= n; i += lanes) {
      Vector v = At(x + i) - most;
      ExpOfNegative<lanes>(v, v);
      sums[0] += v;
      At(y + i) = v;
    }
    Vector v = last - most;
    ExpOfNegative<lanes>(v, v);
    sums[1] += numbers >= static_cast<int32_t>(lanes - (n - i)) ? v : Vector{};
    const float factor = 1.0f / SumOf<lanes>((sums[0] + sums[1]) + (sums[2] + sums[3]));
    for (i = 0; i + lanes <= n; i += lanes) At(y + i) *= factor;
    At(y + n - lanes) = v * factor;
  }

  // A row that is shorter than a vector is filled up with -inf, whose exponential is zero.
  static AG_INLINE void Short(const float* x, float* y, int64_t n, const Numbers& numbers) {
    Vector v = Vector{} - std::numeric_limits<float>::infinity();
    std::memcpy(&v, x, static_cast<size_t>(n) * sizeof(float));
    v -= MostOf<lanes>(v);
    ExpOfNegative<lanes>(v, v);
    v = numbers < static_cast<int32_t>(n) ? v : Vector{};
    v *= 1.0f / SumOf<lanes>(v);
    std::memcpy(y, &v, static_cast<size_t>(n) * sizeof(float));
  }

  static AG_INLINE void Rows(const float* x, float* y, int64_t rows, int64_t n) {
    Numbers numbers;
    for (int32_t k = 0; k < static_cast<int32_t>(lanes); ++k) numbers[k] = k;
    for (int64_t row = 0; row < rows; ++row) {
      const float* from = x + row * n;
      n < lanes ? Short(from, y + row * n, n, numbers) : Softmax(from, y + row * n, n, numbers);
    }
  }
};

#define AG_SOFTMAX_LOOPS(name, lanes, mark)                                 \
  mark void Rows##name(const float* x, float* y, int64_t rows, int64_t n) { \
    Row<lanes>::Rows(x, y, rows, n);                                        \
  }                                                                         \
  constexpr SoftmaxLoops kSoftmax##name{Rows##name};

AG_SOFTMAX_LOOPS(Avx512, 16, AG_AVX512)
AG_SOFTMAX_LOOPS(Avx2, 8, AG_AVX2)
AG_SOFTMAX_LOOPS(Sse, 4, )

}  // namespace

const SoftmaxLoops& SoftmaxLoopsFor(std::string_view isa) {
  return ForInstructionSet(isa, kSoftmaxAvx512, kSoftmaxAvx2, kSoftmaxSse);
}

}  // namespace ag::cpu
