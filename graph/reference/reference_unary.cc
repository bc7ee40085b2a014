// Reference kernels of element-wise operators with one operand.
#include <cmath>
#include <limits>

#include "graph/reference/function_numbers.h"
#include "graph/reference/reference.h"
#include "graph/tensor.h"

namespace ag::internal {
namespace functions {

template <class T>
T Log1p(T x) {
  if constexpr (std::is_same_v<T, double>) {
    return std::log1p(x);
  } else {
    return Scalar<T>::Log(T(1) + x);
  }
}

// An operator's function of exact numbers that cannot compute it.
template <OpKind kOp>
struct Uninterpreted {
  template <class T, class... More>
  static T Of(T x, More... more) {
    return Scalar<T>::Opaque(kOp, x, {more...});
  }
};

#define MATH(Name, word)                                     \
  template <class T>                                         \
  T Name(T x) {                                              \
    if constexpr (std::is_same_v<T, double>) {               \
      return std::word(x);                                   \
    } else if constexpr (requires { Scalar<T>::Name(x); }) { \
      return Scalar<T>::Name(x);                             \
    } else {                                                 \
      return Uninterpreted<OpKind::k##Name>::Of(x);          \
    }                                                        \
  }
#define FUNCTION(Name, parameters, arguments, ...)           \
  template <class T>                                         \
  T Name parameters {                                        \
    if constexpr (requires { Scalar<T>::Name arguments; }) { \
      return Scalar<T>::Name arguments;                      \
    } else if constexpr (requires { T(__VA_ARGS__); }) {     \
      return __VA_ARGS__;                                    \
    } else { /* It compares numbers that have no order. */   \
      return Uninterpreted<OpKind::k##Name>::Of arguments;   \
    }                                                        \
  }
#define BINARY(...)
#include "graph/functions.def"

}  // namespace functions

namespace {

template <class T, class F>
StatusOr<Arrays<T>> Map(const KernelCall<T>& call, F f) {
  Array<T> out(call.out_type().shape);
  const std::vector<T>& in = call.in(0).values;
  for (size_t i = 0; i < in.size(); ++i) {
    out.values[i] = Scalar<T>::Poisoned(in[i]) ? in[i] : f(in[i]);
  }
  return One(std::move(out));
}

}  // namespace

#define FUNCTION(Name, parameters, arguments, ...)                       \
  template <class T>                                                     \
  StatusOr<Arrays<T>> Ref##Name(const KernelCall<T>& call) {             \
    const auto numbers = FunctionNumbers(call.node);                     \
    [[maybe_unused]] const T p = Scalar<T>::Of(numbers[0]);              \
    [[maybe_unused]] const T q = Scalar<T>::Of(numbers[1]);              \
    return Map<T>(call, [&](T x) { return functions::Name arguments; }); \
  }                                                                      \
  AG_KERNEL(Ref##Name);
#define MATH(Name, word) FUNCTION(Name, , (x))
#define BINARY(...)
#include "graph/functions.def"

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
StatusOr<Arrays<T>> RefClip(const KernelCall<T>& call) {
  using S = Scalar<T>;
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const double min = call.node.Float("min"), max = call.node.Float("max");
  const bool from_below = min != -kInf, from_above = max != kInf;
  const DType dtype = call.out_type().dtype;
  const T low = Held<T>(dtype, from_below ? min : 0), high = Held<T>(dtype, from_above ? max : 0);
  return Map<T>(call, [&](T v) {
    if constexpr (S::kOrdered) {
      if (from_below && S::Less(v, low)) v = low;
      return from_above && S::Less(high, v) ? high : v;  // The upper bound wins, as in ONNX.
    } else {
      if (v == T{} && min <= 0 && max >= 0) return v;
      return S::Opaque(OpKind::kClip, v, {S::Of(from_below), low, S::Of(from_above), high});
    }
  });
}

template <class T>
StatusOr<Arrays<T>> RefCast(const KernelCall<T>& call) {
  using S = Scalar<T>;
  const DType from = call.types[0]->dtype, to = call.out_type().dtype;
  if constexpr (std::is_same_v<T, double>) {  // Exact numbers do not round.
    if (IsFloat(to)) {
      Array<T> out = call.in(0);
      RoundTo(to, out.values);
      return One(std::move(out));
    }
  }
  return Map<T>(call, [&](T v) {
    if (to == DType::kBool) return S::Of(v == T{} ? 0 : 1);
    return IsFloat(from) && !IsFloat(to) ? S::Truncate(v) : v;
  });
}

AG_KERNEL(RefGelu);
AG_KERNEL(RefClip);
AG_KERNEL(RefCast);
AG_WHOLE_KERNEL(RefRelu);
AG_WHOLE_KERNEL(RefNeg);
AG_WHOLE_KERNEL(RefAbs);
AG_WHOLE_KERNEL(RefSign);
AG_WHOLE_KERNEL(RefNot);
AG_WHOLE_KERNEL(RefClip);
AG_WHOLE_KERNEL(RefCast);

}  // namespace ag::internal
