#include "device/cpu/block_functions.h"

#include <cmath>

#include "device/cpu/block_macros.h"
#include "device/cpu/fast_math.h"
#include "device/cpu/host.h"
#include "device/cpu/sigmoid_loops.h"

namespace ag::cpu {
namespace {

AG_INLINE float Gelu(float x) { return 0.5f * x * (1.0f + FastErf(x * 0.70710678118654752f)); }
AG_INLINE double Gelu(double x) { return 0.5 * x * (1.0 + std::erf(x * 0.70710678118654752440)); }

// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
template <class T>
AG_INLINE T GeluByTanh(T x) {
  const T inner = T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
  return T(0.5) * x * (T(1) + FastTanh(inner));
}

#define FUNCTION(Name, parameters, arguments, ...) BLOCK(Name, functions::Name arguments)
#define MATH(Name, word) FUNCTION(Name, , (x))
#include "graph/functions.def"
BLOCK(GeluErf, Gelu(x))
BLOCK(GeluTanh, GeluByTanh(x))

}  // namespace

template <class T>
BlockFn<T> FunctionBlock(OpKind op) {
  if constexpr (std::is_same_v<T, float>) {
    if (op == OpKind::kSigmoid) return SigmoidLoopsFor(InstructionSet()).sigmoid;
    if (op == OpKind::kSwish) return SigmoidLoopsFor(InstructionSet()).swish;
  }
  switch (op) {
#define FUNCTION(Name, parameters, arguments, ...) \
  case OpKind::k##Name:                            \
    return PICK(Name);
#define MATH(Name, word) FUNCTION(Name, , )
#include "graph/functions.def"
    default:
      return nullptr;
  }
}
template BlockFn<float> FunctionBlock<float>(OpKind op);
template BlockFn<double> FunctionBlock<double>(OpKind op);

template <class T>
BlockFn<T> GeluBlock(bool by_tanh) {
  return by_tanh ? PICK(GeluTanh) : PICK(GeluErf);
}
template BlockFn<float> GeluBlock<float>(bool by_tanh);
template BlockFn<double> GeluBlock<double>(bool by_tanh);

}  // namespace ag::cpu
