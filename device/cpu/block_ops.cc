#include "device/cpu/block_ops.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <type_traits>

#include "device/cpu/fast_math.h"
#include "device/cpu/half_loops.h"
#include "graph/reference/function_numbers.h"
#include "graph/tensor.h"

namespace ag::cpu {
namespace {

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

AG_INLINE float Gelu(float x) { return 0.5f * x * (1.0f + FastErf(x * 0.70710678118654752f)); }
AG_INLINE double Gelu(double x) { return 0.5 * x * (1.0 + std::erf(x * 0.70710678118654752440)); }

// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
template <class T>
AG_INLINE T GeluByTanh(T x) {
  const T inner = T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
  return T(0.5) * x * (T(1) + FastTanh(inner));
}

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
AG_INLINE T Clamp(T x, T low, T high) {
  const T raised = x < low ? low : x;
  return raised > high ? high : raised;
}

// Returns Python's modulo, with the sign of the divisor. An integer divided by zero gives zero, not
// a trap.
template <class T>
T PythonMod(T x, T y) {
  if (y == 0) return 0;
  const T r = std::fmod(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
template <class T>
T IntegerDiv(T x, T y) {
  return y == 0 ? T(0) : std::trunc(x / y);
}

#define FUNCTION(Name, parameters, arguments, ...) BLOCK(Name, functions::Name arguments)
#define MATH(Name, word) FUNCTION(Name, , (x))
#include "graph/functions.def"
BLOCK(Copy, x)
BLOCK(GeluErf, Gelu(x))
BLOCK(GeluTanh, GeluByTanh(x))
BLOCK(IsSet, x == 0 ? 0 : 1)
BLOCK(Trunc, std::trunc(x))
BLOCK(Clip, Clamp(x, p, q))
BLOCK(AddNumber, x + p)
BLOCK(Div, x / y)
BLOCK(DivOfIntegers, IntegerDiv(x, y))
BLOCK(Pow, std::pow(x, y))
BLOCK(PowOfIntegers, std::trunc(std::pow(x, y)))
BLOCK(Min, (x < y || x != x) ? x : y)
BLOCK(Max, (x > y || x != x) ? x : y)
BLOCK(ModC, y == 0 ? 0 * y / y : std::fmod(x, y))
BLOCK(ModPython, PythonMod(x, y))
BLOCK(Greater, x > y ? 1 : 0)
BLOCK(Less, x < y ? 1 : 0)
BLOCK(Where, x != 0 ? y : z)
BLOCK(ScaleShift, x* y + z)

template <DType dtype>
void RoundToHalfF(const float* a, const float*, const float*, float* out, int64_t n, float, float) {
  RoundToHalf(dtype, a, out, n);
}

// p is the number of the type.
void RoundToD(const double* a, const double*, const double*, double* out, int64_t n, double p,
              double) {
  if (out != a) std::copy_n(a, n, out);
  RoundTo(static_cast<DType>(p), {out, static_cast<size_t>(n)});
}

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

template <class T>
BlockFn<T> CastTo(DType to) {
  if (to == DType::kBool) return PICK(IsSet);
  return IsInteger(to) ? PICK(Trunc) : PICK(Copy);
}

// The operators that one loop computes for all element types and attributes.
template <class T>
struct BlockRow {
  OpKind op;
  BlockFn<T> run;
};
template <class T>
std::span<const BlockRow<T>> BlockRows() {
  static const BlockRow<T> rows[] = {
#define FUNCTION(Name, parameters, arguments, ...) {OpKind::k##Name, PICK(Name)},
#define MATH(Name, word) FUNCTION(Name, , )
#include "graph/functions.def"
      {OpKind::kMin, PICK(Min)},   {OpKind::kMax, PICK(Max)},     {OpKind::kGreater, PICK(Greater)},
      {OpKind::kLess, PICK(Less)}, {OpKind::kWhere, PICK(Where)},
  };
  return rows;
}

}  // namespace

template <class T>
BlockOp<T> BlockOpOf(const Node& node) {
  for (const BlockRow<T>& row : BlockRows<T>()) {
    if (row.op != node.op) continue;
    const auto [p, q] = FunctionNumbers(node);
    return {row.run, static_cast<T>(p), static_cast<T>(q)};
  }
  const bool integer = IsInteger(node.outputs[0].dtype);  // Integers come with T = double.
  const auto number = [&](std::string_view name) { return static_cast<T>(node.Float(name)); };
  if (node.op == OpKind::kDiv) return {integer ? PICK(DivOfIntegers) : PICK(Div)};
  if (node.op == OpKind::kPow) return {integer ? PICK(PowOfIntegers) : PICK(Pow)};
  if (node.op == OpKind::kMod) return {node.Int("fmod") != 0 ? PICK(ModC) : PICK(ModPython)};
  if (node.op == OpKind::kClip) return {PICK(Clip), number("min"), number("max")};
  if (node.op == OpKind::kCast) return {CastTo<T>(static_cast<DType>(node.Int("to")))};
  AG_CHECK(node.op == OpKind::kGelu);
  return {node.attributes->String("approximate") == "none" ? PICK(GeluErf) : PICK(GeluTanh)};
}
template BlockOp<float> BlockOpOf<float>(const Node& node);
template BlockOp<double> BlockOpOf<double>(const Node& node);

template <class T>
BlockOp<T> ScaleShiftOp() {
  return {PICK(ScaleShift)};
}
template BlockOp<float> ScaleShiftOp<float>();
template BlockOp<double> ScaleShiftOp<double>();

template <class T>
BlockOp<T> AddNumberOp(double number) {
  return {PICK(AddNumber), static_cast<T>(number)};
}
template BlockOp<float> AddNumberOp<float>(double);
template BlockOp<double> AddNumberOp<double>(double);

template <class T>
BlockOp<T> SqrtOp() {
  return {PICK(Sqrt)};
}
template BlockOp<float> SqrtOp<float>();
template BlockOp<double> SqrtOp<double>();

BlockOp<double> RoundOp(DType dtype) { return {RoundToD, static_cast<double>(dtype)}; }

BlockOp<float> RoundToHalfOp(DType dtype) {
  return {dtype == DType::kFloat16 ? RoundToHalfF<DType::kFloat16>
                                   : RoundToHalfF<DType::kBFloat16>};
}

AG_CLONES float ExpSum(const float* in, float* out, int64_t n, float shift) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) {
    const float e = FastExp(in[i] - shift);
    out[i] = e;
    sum += e;
  }
  return sum;
}

}  // namespace ag::cpu
