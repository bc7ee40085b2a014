#include "device/cpu/block_ops.h"

#include <cmath>
#include <type_traits>

#include "device/cpu/fast_math.h"

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

BLOCK(Copy, x)
BLOCK(Relu, x < 0 ? 0 : x)
BLOCK(LeakyRelu, x < 0 ? p * x : x)
BLOCK(Sigmoid, FastSigmoid(x))
BLOCK(Tanh, FastTanh(x))
BLOCK(HardSigmoid, Clamp(p* x + q, decltype(x + 0)(0), decltype(x + 0)(1)))
BLOCK(HardSwish, x* Clamp(x + 3, decltype(x + 0)(0), decltype(x + 0)(6)) / 6)
BLOCK(Swish, x* FastSigmoid(x))
BLOCK(GeluErf, Gelu(x))
BLOCK(GeluTanh, GeluByTanh(x))
BLOCK(Erf, FastErf(x))
BLOCK(Exp, FastExp(x))
BLOCK(Log, std::log(x))
BLOCK(Sqrt, std::sqrt(x))
BLOCK(Neg, -x)
BLOCK(Abs, std::abs(x))
BLOCK(Reciprocal, 1 / x)
BLOCK(ReciprocalOfInteger, x == 0 ? 0 : std::trunc(1 / x))
BLOCK(Floor, std::floor(x))
BLOCK(Ceil, std::ceil(x))
BLOCK(Not, x == 0 ? 1 : 0)
BLOCK(IsSet, x == 0 ? 0 : 1)
BLOCK(Trunc, std::trunc(x))
BLOCK(Clip, Clamp(x, p, q))
BLOCK(Add, x + y)
BLOCK(AddNumber, x + p)
BLOCK(Sub, x - y)
BLOCK(Mul, x* y)
BLOCK(Div, x / y)
BLOCK(DivOfIntegers, IntegerDiv(x, y))
BLOCK(Pow, std::pow(x, y))
BLOCK(PowOfIntegers, std::trunc(std::pow(x, y)))
BLOCK(Min, (x < y || x != x) ? x : y)
BLOCK(Max, (x > y || x != x) ? x : y)
BLOCK(ModC, y == 0 ? 0 * y / y : std::fmod(x, y))
BLOCK(ModPython, PythonMod(x, y))
BLOCK(Equal, x == y ? 1 : 0)
BLOCK(Greater, x > y ? 1 : 0)
BLOCK(Less, x < y ? 1 : 0)
BLOCK(And, (x != 0 && y != 0) ? 1 : 0)
BLOCK(Or, (x != 0 || y != 0) ? 1 : 0)
BLOCK(Where, x != 0 ? y : z)
BLOCK(ScaleShift, x* y + z)

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

// Returns a unary operator. Integers come with T = double.
template <class T>
BlockOp<T> UnaryOf(const Node& node) {
  const auto number = [&](std::string_view name) { return static_cast<T>(node.Float(name)); };
  const bool integer = IsInteger(node.outputs[0].dtype);
  switch (node.op) {
    case OpKind::kRelu:
      return {PICK(Relu)};
    case OpKind::kLeakyRelu:
      return {PICK(LeakyRelu), number("alpha")};
    case OpKind::kSigmoid:
      return {PICK(Sigmoid)};
    case OpKind::kTanh:
      return {PICK(Tanh)};
    case OpKind::kHardSigmoid:
      return {PICK(HardSigmoid), number("alpha"), number("beta")};
    case OpKind::kHardSwish:
      return {PICK(HardSwish)};
    case OpKind::kSwish:
      return {PICK(Swish)};
    case OpKind::kGelu:
      return {node.attributes->String("approximate") == "none" ? PICK(GeluErf) : PICK(GeluTanh)};
    case OpKind::kErf:
      return {PICK(Erf)};
    case OpKind::kExp:
      return {PICK(Exp)};
    case OpKind::kLog:
      return {PICK(Log)};
    case OpKind::kSqrt:
      return {PICK(Sqrt)};
    case OpKind::kNeg:
      return {PICK(Neg)};
    case OpKind::kAbs:
      return {PICK(Abs)};
    case OpKind::kReciprocal:
      return {integer ? PICK(ReciprocalOfInteger) : PICK(Reciprocal)};
    case OpKind::kFloor:
      return {PICK(Floor)};
    case OpKind::kCeil:
      return {PICK(Ceil)};
    case OpKind::kNot:
      return {PICK(Not)};
    case OpKind::kClip:
      return {PICK(Clip), number("min"), number("max")};
    case OpKind::kCast:
      return {CastTo<T>(static_cast<DType>(node.Int("to")))};
    default:
      return {};
  }
}

template <class T>
BlockOp<T> BinaryOf(const Node& node) {
  const bool integer = IsInteger(node.outputs[0].dtype);
  switch (node.op) {
    case OpKind::kAdd:
      return {PICK(Add)};
    case OpKind::kSub:
      return {PICK(Sub)};
    case OpKind::kMul:
      return {PICK(Mul)};
    case OpKind::kDiv:
      return {integer ? PICK(DivOfIntegers) : PICK(Div)};
    case OpKind::kPow:
      return {integer ? PICK(PowOfIntegers) : PICK(Pow)};
    case OpKind::kMin:
      return {PICK(Min)};
    case OpKind::kMax:
      return {PICK(Max)};
    case OpKind::kMod:
      return {node.Int("fmod") != 0 ? PICK(ModC) : PICK(ModPython)};
    case OpKind::kEqual:
      return {PICK(Equal)};
    case OpKind::kGreater:
      return {PICK(Greater)};
    case OpKind::kLess:
      return {PICK(Less)};
    case OpKind::kAnd:
      return {PICK(And)};
    case OpKind::kOr:
      return {PICK(Or)};
    case OpKind::kWhere:
      return {PICK(Where)};
    default:
      return {};
  }
}

}  // namespace

template <class T>
BlockOp<T> BlockOpOf(const Node& node) {
  return Has(node.op, kUnary) ? UnaryOf<T>(node) : BinaryOf<T>(node);
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
