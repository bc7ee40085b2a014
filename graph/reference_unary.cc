// Reference kernels of element-wise operators with one operand.
#include <bit>
#include <cmath>
#include <limits>

#include "graph/half.h"
#include "graph/hash.h"
#include "graph/reference.h"

namespace ag::internal {
namespace {

template <class T, class F>
StatusOr<Arrays<T>> Map(const KernelCall<T>& call, F f) {
  Array<T> out(call.out_type().shape);
  const std::vector<T>& in = call.in(0).values;
  for (size_t i = 0; i < in.size(); ++i) out.values[i] = f(in[i]);
  return One(std::move(out));
}

uint64_t BitsOf(double v) { return std::bit_cast<uint64_t>(v); }

template <class T>
T Hard(T v, double alpha, double beta) {
  using S = Scalar<T>;
  if constexpr (S::kOrdered) {
    const T line = S::Of(alpha) * v + S::Of(beta);
    if (S::Less(line, T{})) return S::Of(0);
    return S::Less(S::Of(1), line) ? S::Of(1) : line;
  } else {
    return S::Opaque(Function::kHardSigmoid, MixIn(BitsOf(alpha), BitsOf(beta)), v);
  }
}

// Returns `v` rounded as a store in the float type `dtype` rounds it.
double RoundTo(DType dtype, double v) {
  if (dtype == DType::kFloat32) return static_cast<float>(v);
  if (dtype == DType::kFloat16) return HalfToFloat(DoubleToHalf(v));
  if (dtype == DType::kBFloat16) return BFloat16ToFloat(DoubleToBFloat16(v));
  return v;
}

}  // namespace

template <class T>
StatusOr<Arrays<T>> RefRelu(const KernelCall<T>& call) {
  using S = Scalar<T>;
  return Map<T>(call, [](T v) {
    if constexpr (S::kOrdered) {
      return S::Less(v, T{}) ? T{} : v;  // NaN is not less, so it stays.
    } else {
      return S::Opaque(Function::kRelu, 0, v, true);
    }
  });
}

template <class T>
StatusOr<Arrays<T>> RefLeakyRelu(const KernelCall<T>& call) {
  using S = Scalar<T>;
  const double slope = call.node.Float("alpha");
  const T alpha = S::Of(slope);
  return Map<T>(call, [&](T v) {
    if constexpr (S::kOrdered) {
      return S::Less(v, T{}) ? alpha * v : v;
    } else {
      return S::Opaque(Function::kLeakyRelu, BitsOf(slope), v, true);
    }
  });
}

template <class T>
StatusOr<Arrays<T>> RefSigmoid(const KernelCall<T>& call) {
  return Map<T>(call, Scalar<T>::Sigmoid);
}

template <class T>
StatusOr<Arrays<T>> RefTanh(const KernelCall<T>& call) {
  return Map<T>(call, Scalar<T>::Tanh);
}

template <class T>
StatusOr<Arrays<T>> RefHardSigmoid(const KernelCall<T>& call) {
  const double alpha = call.node.Float("alpha"), beta = call.node.Float("beta");
  return Map<T>(call, [&](T v) { return Hard(v, alpha, beta); });
}

template <class T>
StatusOr<Arrays<T>> RefHardSwish(const KernelCall<T>& call) {
  return Map<T>(call, [](T v) { return v * Hard(v, 1.0 / 6, 0.5); });
}

template <class T>
StatusOr<Arrays<T>> RefSwish(const KernelCall<T>& call) {
  return Map<T>(call, [](T v) { return v * Scalar<T>::Sigmoid(v); });
}

template <class T>
StatusOr<Arrays<T>> RefGelu(const KernelCall<T>& call) {
  using S = Scalar<T>;
  const T half = S::Of(0.5), one = S::Of(1);
  if (call.node.attributes->String("approximate") == "tanh") {
    const T scale = S::Of(0.7978845608028654), cubic = S::Of(0.044715);  // sqrt(2 / pi).
    return Map<T>(call,
                  [&](T v) { return half * v * (one + S::Tanh(scale * (v + cubic * v * v * v))); });
  }
  const T scale = S::Of(0.7071067811865476);  // sqrt(1 / 2).
  return Map<T>(call, [&](T v) { return half * v * (one + S::Erf(scale * v)); });
}

template <class T>
StatusOr<Arrays<T>> RefErf(const KernelCall<T>& call) {
  return Map<T>(call, Scalar<T>::Erf);
}

template <class T>
StatusOr<Arrays<T>> RefExp(const KernelCall<T>& call) {
  return Map<T>(call, Scalar<T>::Exp);
}

template <class T>
StatusOr<Arrays<T>> RefLog(const KernelCall<T>& call) {
  return Map<T>(call, Scalar<T>::Log);
}

template <class T>
StatusOr<Arrays<T>> RefSqrt(const KernelCall<T>& call) {
  using S = Scalar<T>;
  return Map<T>(call, [](T v) { return S::Sqrt(v); });
}

template <class T>
StatusOr<Arrays<T>> RefNeg(const KernelCall<T>& call) {
  return Map<T>(call, [](T v) { return Scalar<T>::Of(-1) * v; });  // Not 0 - v, which loses -0.0.
}

template <class T>
StatusOr<Arrays<T>> RefAbs(const KernelCall<T>& call) {
  using S = Scalar<T>;
  return Map<T>(call, [](T v) {
    if constexpr (std::is_same_v<T, double>) {
      return std::fabs(v);
    } else if constexpr (S::kOrdered) {
      return S::Less(v, T{}) ? T{} - v : v;
    } else {
      return S::Opaque(Function::kAbs, 0, v, true);
    }
  });
}

template <class T>
StatusOr<Arrays<T>> RefReciprocal(const KernelCall<T>& call) {
  const T one = Scalar<T>::Of(1);
  return Map<T>(call, [&](T v) { return one / v; });
}

template <class T>
StatusOr<Arrays<T>> RefFloor(const KernelCall<T>& call) {
  return Map<T>(call, Scalar<T>::Floor);
}

template <class T>
StatusOr<Arrays<T>> RefCeil(const KernelCall<T>& call) {
  return Map<T>(call, Scalar<T>::Ceil);
}

template <class T>
StatusOr<Arrays<T>> RefNot(const KernelCall<T>& call) {
  using S = Scalar<T>;
  return Map<T>(call, [](T v) { return S::Poisoned(v) ? v : S::Of(v == T{} ? 1 : 0); });
}

template <class T>
StatusOr<Arrays<T>> RefClip(const KernelCall<T>& call) {
  using S = Scalar<T>;
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const double min = call.node.Float("min"), max = call.node.Float("max");
  const bool from_below = min != -kInf, from_above = max != kInf;
  const T low = S::Of(from_below ? min : 0), high = S::Of(from_above ? max : 0);
  return Map<T>(call, [&](T v) {
    if constexpr (S::kOrdered) {
      if (from_below && S::Less(v, low)) v = low;
      return from_above && S::Less(high, v) ? high : v;  // The upper bound wins, as in ONNX.
    } else {
      return S::Opaque(Function::kClip, MixIn(BitsOf(min), BitsOf(max)), v, min <= 0 && max >= 0);
    }
  });
}

template <class T>
StatusOr<Arrays<T>> RefCast(const KernelCall<T>& call) {
  using S = Scalar<T>;
  const DType from = call.types[0]->dtype, to = call.out_type().dtype;
  return Map<T>(call, [&](T v) {
    if (to == DType::kBool) return S::Poisoned(v) ? v : S::Of(v == T{} ? 0 : 1);
    if (IsFloat(to)) {
      if constexpr (std::is_same_v<T, double>) return RoundTo(to, v);
      return v;  // Exact numbers do not round.
    }
    return IsFloat(from) ? S::Truncate(v) : v;
  });
}

AG_KERNEL(RefRelu);
AG_KERNEL(RefLeakyRelu);
AG_KERNEL(RefSigmoid);
AG_KERNEL(RefTanh);
AG_KERNEL(RefHardSigmoid);
AG_KERNEL(RefHardSwish);
AG_KERNEL(RefSwish);
AG_KERNEL(RefGelu);
AG_KERNEL(RefErf);
AG_KERNEL(RefExp);
AG_KERNEL(RefLog);
AG_KERNEL(RefSqrt);
AG_KERNEL(RefNeg);
AG_KERNEL(RefAbs);
AG_KERNEL(RefReciprocal);
AG_KERNEL(RefFloor);
AG_KERNEL(RefCeil);
AG_KERNEL(RefNot);
AG_KERNEL(RefClip);
AG_KERNEL(RefCast);

}  // namespace ag::internal
