#include "device/cpu/block_ops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <type_traits>

#include "device/cpu/block_functions.h"
#include "device/cpu/block_macros.h"
#include "device/cpu/fast_math.h"
#include "device/cpu/half_loops.h"
#include "graph/reference/function_numbers.h"
#include "graph/tensor.h"

namespace ag::cpu {
namespace {

template <class T>
AG_INLINE T Clamp(T x, T low, T high) {
  const T raised = x < low ? low : x;
  return raised > high ? high : raised;
}

// Returns Python's modulo, with the sign of the divisor.
template <class T>
T PythonMod(T x, T y) {
  if (y == 0) return 0;
  const T r = std::fmod(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

BLOCK(Copy, x)
BLOCK(IsSet, x == 0 ? 0 : 1)
BLOCK(Clip, Clamp(x, p, q))
BLOCK(AddNumber, x + p)
BLOCK(Div, x / y)
BLOCK(Pow, std::pow(x, y))
BLOCK(Min, (x < y || x != x) ? x : y)
BLOCK(Max, (x > y || x != x) ? x : y)
BLOCK(ModC, y == 0 ? 0 * y / y : std::fmod(x, y))
BLOCK(ModPython, PythonMod(x, y))
BLOCK(Greater, x > y ? 1 : 0)
BLOCK(Less, x < y ? 1 : 0)
BLOCK(Where, x != 0 ? y : z)
BLOCK(ScaleShift, x* y + z)
// Two operators in one loop, whose result is that of one after the other.
BLOCK(AddRelu, functions::Relu(x + y))
BLOCK(AddClip, Clamp(x + y, p, q))
BLOCK(AddHardSwish, functions::HardSwish(x + y))
BLOCK(MulRelu, functions::Relu(x* y))
BLOCK(MulClip, Clamp(x* y, p, q))
BLOCK(ScaleShiftRelu, functions::Relu(x* y + z))
BLOCK(ScaleShiftClip, Clamp(x* y + z, p, q))
BLOCK(ScaleShiftHardSwish, functions::HardSwish(x* y + z))

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

// An integer in the place of a double.
using Integer = int64_t __attribute__((may_alias));

// Wrap, as int64_t does nowhere else in C++.
int64_t Sum(int64_t x, int64_t y) {
  return static_cast<int64_t>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
}
int64_t Product(int64_t x, int64_t y) {
  return static_cast<int64_t>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
}
int64_t Negative(int64_t x) { return static_cast<int64_t>(-static_cast<uint64_t>(x)); }
// An integer divided by zero gives zero, not a trap; so does the one quotient that does not fit.
int64_t Quotient(int64_t x, int64_t y) { return y == 0 ? 0 : y == -1 ? Negative(x) : x / y; }
int64_t Rest(int64_t x, int64_t y) { return y == 0 || y == -1 ? 0 : x % y; }
int64_t RestOfDivisorsSign(int64_t x, int64_t y) {
  const int64_t rest = Rest(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}
// A negative exponent gives 1 over the power, cut; 1 and -1 go by whether the exponent is odd.
int64_t Power(int64_t x, int64_t y) {
  if (y < 0 && x != 1 && x != -1) return 0;
  int64_t power = 1;
  for (auto rest = static_cast<uint64_t>(y); rest != 0; rest >>= 1, x = Product(x, x)) {
    if ((rest & 1) != 0) power = Product(power, x);
  }
  return power;
}

// Rounds toward zero, to the nearest end when out of range, NaN to 0.
int64_t Saturated(double value, int64_t min, int64_t max) {
  if (value != value) return 0;
  // As a double the upper end may round up to the first value that does not fit.
  if (value >= static_cast<double>(max)) return max;
  if (value <= static_cast<double>(min)) return min;
  return static_cast<int64_t>(value);
}
int64_t Saturated(double value) { return Saturated(value, INT64_MIN, INT64_MAX); }

// INTEGER_BLOCK(Name, expression of x, y, z, low, high) makes NameI. `to` is the type of its
// results.
#define INTEGER_BLOCK_TO(to, Name, ...)                                                   \
  void Name##I(const double* a, const double* b, const double* c, double* out, int64_t n, \
               double p, double q) {                                                      \
    [[maybe_unused]] const int64_t low = Saturated(p), high = Saturated(q);               \
    for (int64_t i = 0; i < n; ++i) {                                                     \
      [[maybe_unused]] const int64_t x = reinterpret_cast<const Integer*>(a)[i];          \
      [[maybe_unused]] const int64_t y = reinterpret_cast<const Integer*>(b)[i];          \
      [[maybe_unused]] const int64_t z = reinterpret_cast<const Integer*>(c)[i];          \
      reinterpret_cast<to*>(out)[i] = (__VA_ARGS__);                                      \
    }                                                                                     \
  }
#define INTEGER_BLOCK(Name, ...) INTEGER_BLOCK_TO(Integer, Name, __VA_ARGS__)
INTEGER_BLOCK(Add, Sum(x, y))
INTEGER_BLOCK(Sub, Sum(x, Negative(y)))
INTEGER_BLOCK(Mul, Product(x, y))
INTEGER_BLOCK(Div, Quotient(x, y))
INTEGER_BLOCK(ModC, Rest(x, y))
INTEGER_BLOCK(ModPython, RestOfDivisorsSign(x, y))
INTEGER_BLOCK(Pow, Power(x, y))
INTEGER_BLOCK(Min, x < y ? x : y)
INTEGER_BLOCK(Max, x < y ? y : x)
INTEGER_BLOCK(Neg, Negative(x))
INTEGER_BLOCK(Abs, x < 0 ? Negative(x) : x)
INTEGER_BLOCK(Sign, (x > 0) - (x < 0))
INTEGER_BLOCK(Relu, x < 0 ? 0 : x)
INTEGER_BLOCK(Clip, std::min(std::max(x, low), high))
INTEGER_BLOCK(Where, a[i] != 0 ? y : z)
INTEGER_BLOCK_TO(double, Equal, x == y ? 1.0 : 0.0)
INTEGER_BLOCK_TO(double, Greater, x > y ? 1.0 : 0.0)
INTEGER_BLOCK_TO(double, Less, x < y ? 1.0 : 0.0)
INTEGER_BLOCK_TO(double, IsSet, x == 0 ? 0.0 : 1.0)
INTEGER_BLOCK_TO(double, ToFloat, static_cast<float>(x))
INTEGER_BLOCK_TO(double, ToDouble, static_cast<double>(x))

// What an integer type holds, from and to numbers.
template <class T>
void WrapI(const double* a, const double*, const double*, double* out, int64_t n, double, double) {
  for (int64_t i = 0; i < n; ++i) {
    const int64_t x = reinterpret_cast<const Integer*>(a)[i];
    reinterpret_cast<Integer*>(out)[i] = static_cast<T>(x);
  }
}
template <class T>
void FromDoubleI(const double* a, const double*, const double*, double* out, int64_t n, double,
                 double) {
  using Ends = std::numeric_limits<T>;
  for (int64_t i = 0; i < n; ++i) {
    const double x = a[i];
    reinterpret_cast<Integer*>(out)[i] = Saturated(x, Ends::min(), Ends::max());
  }
}

// Calls f with a zero of the C++ type of `dtype`. REQUIRES: an integer type but u64.
template <class F>
auto WithInteger(DType dtype, const F& f) {
  switch (dtype) {
    case DType::kInt32:
      return f(int32_t{});
    case DType::kInt16:
      return f(int16_t{});
    case DType::kInt8:
      return f(int8_t{});
    case DType::kUInt32:
      return f(uint32_t{});
    case DType::kUInt16:
      return f(uint16_t{});
    case DType::kUInt8:
      return f(uint8_t{});
    default:
      AG_CHECK(dtype == DType::kInt64);
      return f(int64_t{});
  }
}

// Bounds beyond the type become its ends.
BlockOp<double> ClipOp(const Node& node) {
  double bounds[] = {node.Float("min"), node.Float("max")};
  RoundTo(node.outputs[0].dtype, bounds);
  return {ClipI, bounds[0], bounds[1]};
}

}  // namespace

template <class T>
BlockOp<T> BlockOpOf(const Node& node) {
  if (const BlockFn<T> run = FunctionBlock<T>(node.op); run != nullptr) {
    const auto [p, q] = FunctionNumbers(node);
    return {run, static_cast<T>(p), static_cast<T>(q)};
  }
  const auto number = [&](std::string_view name) { return static_cast<T>(node.Float(name)); };
  switch (node.op) {
    case OpKind::kMin:
      return {PICK(Min)};
    case OpKind::kMax:
      return {PICK(Max)};
    case OpKind::kGreater:
      return {PICK(Greater)};
    case OpKind::kLess:
      return {PICK(Less)};
    case OpKind::kWhere:
      return {PICK(Where)};
    case OpKind::kDiv:
      return {PICK(Div)};
    case OpKind::kPow:
      return {PICK(Pow)};
    case OpKind::kMod:
      return {node.Int("fmod") != 0 ? PICK(ModC) : PICK(ModPython)};
    case OpKind::kClip:
      return {PICK(Clip), number("min"), number("max")};
    case OpKind::kCast:
      return {node.outputs[0].dtype == DType::kBool ? PICK(IsSet) : PICK(Copy)};
    default:
      AG_CHECK(node.op == OpKind::kGelu);
      return {GeluBlock<T>(node.attributes->String("approximate") != "none")};
  }
}
template BlockOp<float> BlockOpOf<float>(const Node& node);
template BlockOp<double> BlockOpOf<double>(const Node& node);

BlockOp<double> IntegerOpOf(const Node& node) {
  switch (node.op) {
    case OpKind::kAdd:
      return {AddI};
    case OpKind::kSub:
      return {SubI};
    case OpKind::kMul:
      return {MulI};
    case OpKind::kDiv:
      return {DivI};
    case OpKind::kMod:
      return {node.Int("fmod") != 0 ? ModCI : ModPythonI};
    case OpKind::kPow:
      return {PowI};
    case OpKind::kMin:
      return {MinI};
    case OpKind::kMax:
      return {MaxI};
    case OpKind::kNeg:
      return {NegI};
    case OpKind::kAbs:
      return {AbsI};
    case OpKind::kSign:
      return {SignI};
    case OpKind::kRelu:
      return {ReluI};
    case OpKind::kClip:
      return ClipOp(node);
    case OpKind::kWhere:
      return {WhereI};
    case OpKind::kEqual:
      return {EqualI};
    case OpKind::kGreater:
      return {GreaterI};
    case OpKind::kLess:
      return {LessI};
    default:
      return {};
  }
}

BlockOp<double> IntegerToNumberOp(DType dtype) {
  if (dtype == DType::kBool) return {IsSetI};
  return {dtype == DType::kFloat32 ? ToFloatI : ToDoubleI};
}

BlockOp<double> NumberToIntegerOp(DType dtype) {
  return {WithInteger(dtype, [](auto zero) { return &FromDoubleI<decltype(zero)>; })};
}

BlockOp<double> WrapOp(DType dtype) {
  return {WithInteger(dtype, [](auto zero) { return &WrapI<decltype(zero)>; })};
}

template <class T>
std::optional<BlockOp<T>> JoinedOp(const BlockOp<T>& first, const BlockOp<T>& second) {
  struct Row {
    BlockFn<T> first, second, joined;
  };
  static const BlockFn<T> mul = FunctionBlock<T>(OpKind::kMul),
                          add = FunctionBlock<T>(OpKind::kAdd),
                          relu = FunctionBlock<T>(OpKind::kRelu),
                          hard_swish = FunctionBlock<T>(OpKind::kHardSwish);
  static const Row rows[] = {
      {mul, add, PICK(ScaleShift)},
      {add, relu, PICK(AddRelu)},
      {add, PICK(Clip), PICK(AddClip)},
      {add, hard_swish, PICK(AddHardSwish)},
      {mul, relu, PICK(MulRelu)},
      {mul, PICK(Clip), PICK(MulClip)},
      {PICK(ScaleShift), relu, PICK(ScaleShiftRelu)},
      {PICK(ScaleShift), PICK(Clip), PICK(ScaleShiftClip)},
      {PICK(ScaleShift), hard_swish, PICK(ScaleShiftHardSwish)},
  };
  for (const Row& row : rows) {
    if (row.first == first.run && row.second == second.run) {
      return BlockOp<T>{row.joined, second.p, second.q};
    }
  }
  return std::nullopt;
}
template std::optional<BlockOp<float>> JoinedOp(const BlockOp<float>&, const BlockOp<float>&);
template std::optional<BlockOp<double>> JoinedOp(const BlockOp<double>&, const BlockOp<double>&);

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
  return {FunctionBlock<T>(OpKind::kSqrt)};
}
template BlockOp<float> SqrtOp<float>();
template BlockOp<double> SqrtOp<double>();

BlockOp<double> RoundOp(DType dtype) { return {RoundToD, static_cast<double>(dtype)}; }

BlockOp<float> RoundToHalfOp(DType dtype) {
  return {dtype == DType::kFloat16 ? RoundToHalfF<DType::kFloat16>
                                   : RoundToHalfF<DType::kBFloat16>};
}

}  // namespace ag::cpu
