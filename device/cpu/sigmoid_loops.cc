#include "device/cpu/sigmoid_loops.h"

#include <cstring>
#include <limits>

#include "device/cpu/fast_math.h"
#include "device/cpu/lane_math.h"
#include "device/cpu/lanes.h"

namespace ag::cpu {
namespace {

// Sets `quotient` to 1 / x for x in [1, 2^127]. A division by vectors of AVX-512 takes longer than
// everything else here, so its estimate of 14 bits is refined by one step of Newton's.
template <int64_t lanes>
AG_INLINE void Invert(const typename Lanes<lanes>::Vector& x,
                      typename Lanes<lanes>::Vector& quotient) {
  if constexpr (lanes == 16) {
    typename Lanes<lanes>::Vector estimate;
    asm("vrcp14ps %1, %0" : "=v"(estimate) : "v"(x));
    quotient = estimate * (2.0f - x * estimate);
  } else {
    quotient = 1.0f / x;
  }
}

// Sets `y` to 1 / (1 + e^-x), where e^-x is at most 2^126.
template <int64_t lanes>
AG_INLINE void Sigmoid(const typename Lanes<lanes>::Vector& x, typename Lanes<lanes>::Vector& y) {
  using Vector = typename Lanes<lanes>::Vector;
  const Vector least = Vector{} - 87.33f, most = Vector{} + 87.33f;
  const Vector above = x < least ? least : x;
  Vector e;
  PowerOfTwo<lanes>((above > most ? most : above) * -1.44269504088896341f, e);
  Invert<lanes>(e + 1.0f, y);
}

template <int64_t lanes>
AG_INLINE void Swish(const typename Lanes<lanes>::Vector& x, typename Lanes<lanes>::Vector& y) {
  using Vector = typename Lanes<lanes>::Vector;
  Sigmoid<lanes>(x, y);
  constexpr float kLowest = std::numeric_limits<float>::lowest();
  y = x < kLowest ? Vector{} + std::numeric_limits<float>::quiet_NaN() : x * y;
}

template <int64_t lanes, auto function>
AG_INLINE void Loop(const float* x, float* y, int64_t n) {
  using Vector = typename Lanes<lanes>::Vector;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    Vector in, out;
    LoadLanes<lanes>(x + i, &in);
    function(in, out);
    StoreLanes<lanes>(out, y + i);
  }
  if (i == n) return;
  Vector in{}, out;
  const size_t bytes = static_cast<size_t>(n - i) * sizeof(float);
  std::memcpy(&in, x + i, bytes);
  function(in, out);
  std::memcpy(y + i, &out, bytes);
}

#define AG_SIGMOID_LOOPS(name, lanes, mark)                                                       \
  mark void Sigmoid##name(const float* a, const float*, const float*, float* out, int64_t n,      \
                          float, float) {                                                         \
    Loop<lanes, Sigmoid<lanes>>(a, out, n);                                                       \
  }                                                                                               \
  mark void Swish##name(const float* a, const float*, const float*, float* out, int64_t n, float, \
                        float) {                                                                  \
    Loop<lanes, Swish<lanes>>(a, out, n);                                                         \
  }                                                                                               \
  constexpr SigmoidLoops k##name{Sigmoid##name, Swish##name};

AG_SIGMOID_LOOPS(Avx512, 16, AG_AVX512)
AG_SIGMOID_LOOPS(Avx2, 8, AG_AVX2)
AG_SIGMOID_LOOPS(Sse, 4, )

}  // namespace

const SigmoidLoops& SigmoidLoopsFor(std::string_view isa) {
  return ForInstructionSet(isa, kAvx512, kAvx2, kSse);
}

}  // namespace ag::cpu
