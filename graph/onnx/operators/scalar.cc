// Element-wise operators: those that the IR lacks, and element types in which it lacks the others.
#include <algorithm>
#include <cmath>
#include <optional>

#include "graph/narrow.h"
#include "graph/onnx/operators/arithmetic.h"
#include "graph/onnx/operators/layout.h"
#include "graph/onnx/operators/text.h"
#include "graph/onnx/operators/wide.h"
#include "graph/shapes.h"

namespace ag::onnx_operators {
namespace {

// Makes result 0 of function(element), in the type of operand 0.
template <class W, class F>
Status MapAs(OperatorCall& call, F&& function) {
  std::vector<W> values = Widened<W>(call.In(0));
  for (W& value : values) value = function(value);
  return GiveNarrowed(call, 0, call.Type(0), values);
}

template <class F>
Status MapFloats(OperatorCall& call, F&& function) {
  AG_TRY(call.CheckInputs(1, 1));
  if (!IsFloat(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  return MapAs<double>(call, function);
}

Status RefuseBool(const OperatorCall& call) {
  if (call.TypeOf(0) != DType::kBool) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "expected numbers, got {}", call.Type(0).ToString());
}

template <class F>
Status MapNumbers(OperatorCall& call, F&& function) {
  AG_TRY(call.CheckInputs(1, 1));
  AG_TRY(RefuseBool(call));
  return ForWide(call.TypeOf(0), [&]<class W>() { return MapAs<W>(call, function); });
}

// Sets `out` to function(a, b), with both broadcast to `shape`.
template <class W, class F>
void CombineAll(const std::vector<W>& a, const Shape& shape_a, const std::vector<W>& b,
                const Shape& shape_b, const Shape& shape, std::vector<W>& out, F&& function) {
  size_t next = 0;
  out.resize(static_cast<size_t>(NumElements(shape)));
  Walk<2>(shape, {BroadcastStrides(shape_a, shape), BroadcastStrides(shape_b, shape)},
          [&](const std::array<int64_t, 2>& at) { out[next++] = function(a[at[0]], b[at[1]]); });
}

// Makes result 0, of `dtype` or else of the operands' type, of function(a, b).
template <class F>
Status Map2(OperatorCall& call, std::optional<DType> dtype, F&& function) {
  AG_TRY(call.CheckInputs(2, 2));
  if (call.node().op_type != "Equal") AG_TRY(RefuseBool(call));
  AG_TRY(call.CheckType(1, call.TypeOf(0)));
  AG_LET(const Shape shape, BroadcastOf(call));
  const TensorType type{dtype.value_or(call.TypeOf(0)), shape};
  AG_TRY(call.MakeBytes(0, type));  // Checks the size.
  return ForWide(call.TypeOf(0), [&]<class W>() -> Status {
    std::vector<W> out;
    CombineAll(Widened<W>(call.In(0)), call.ShapeOf(0), Widened<W>(call.In(1)), call.ShapeOf(1),
               shape, out, function);
    return GiveNarrowed(call, 0, type, out);
  });
}

template <class F>
Status Calculate(OperatorCall& call, F&& function) {
  return Map2(call, std::nullopt, function);
}
template <class F>
Status CompareElements(OperatorCall& call, F&& function) {
  return Map2(call, DType::kBool, function);
}

// Bits are of integers only.
template <class F>
Status CalculateBits(OperatorCall& call, F&& function) {
  AG_TRY(call.CheckInputs(1, 2));
  if (!IsInteger(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  return Calculate(call, [&]<class W>(W a, W b) {
    return static_cast<W>(function(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
  });
}

// Division by zero, which ONNX leaves open for integers, gives 0 as in numpy.
template <class W>
W Quotient(W a, W b) {
  if constexpr (std::is_floating_point_v<W>) return a / b;
  if (b == 0) return 0;
  // The least number has no counterpart: it wraps around.
  return b == static_cast<W>(-1) && std::is_signed_v<W> ? Minus<W>(0, a) : static_cast<W>(a / b);
}

// With the sign of the dividend.
template <class W>
W RemainderOf(W a, W b) {
  if constexpr (std::is_floating_point_v<W>) return std::fmod(a, b);
  return b == 0 ? 0 : Minus(a, Times(Quotient(a, b), b));
}

// With the sign of the divisor.
template <class W>
W ModuloOf(W a, W b) {
  const W rest = RemainderOf(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? Plus(rest, b) : rest;
}

Status RunMod(OperatorCall& call) {
  if (call.Int("fmod", 0) != 0) {
    return Calculate(call, []<class W>(W a, W b) { return RemainderOf(a, b); });
  }
  return Calculate(call, []<class W>(W a, W b) { return ModuloOf(a, b); });
}

// Multiplies; a negative exponent gives 1 over the power, cut to an integer.
template <class W>
W IntegerPower(W base, int64_t exponent) {
  const W minus_one = Minus<W>(0, 1);
  if (exponent < 0 && base != 1 && (base != minus_one || !std::is_signed_v<W>)) return 0;
  auto rest = static_cast<uint64_t>(exponent);
  if (exponent < 0) rest = 0 - rest;  // Also of the least integer.
  W result = 1;
  for (; rest != 0; rest >>= 1, base = Times(base, base)) {
    if ((rest & 1) != 0) result = Times(result, base);
  }
  return result;
}

// The result has the type of the base; the exponent may have another one.
Status RunPow(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 2));
  AG_TRY(RefuseBool(call));
  AG_LET(const Shape shape, BroadcastOf(call));
  const TensorType type{call.TypeOf(0), shape};
  AG_TRY(CheckHasWide(call.TypeOf(1)));
  AG_TRY(call.MakeBytes(0, type));
  return ForWide(type.dtype, [&]<class W>() -> Status {
    const std::vector<W> bases = Widened<W>(call.In(0));
    const bool exact = !std::is_same_v<W, double> && !IsFloat(call.TypeOf(1));
    const std::vector<int64_t> integers =
        exact ? Widened<int64_t>(call.In(1)) : std::vector<int64_t>();
    const std::vector<double> numbers = exact ? std::vector<double>() : Widened<double>(call.In(1));
    std::vector<W> out;
    out.reserve(static_cast<size_t>(NumElements(shape)));
    Walk<2>(shape,
            {BroadcastStrides(call.ShapeOf(0), shape), BroadcastStrides(call.ShapeOf(1), shape)},
            [&](const std::array<int64_t, 2>& at) {
              const W base = bases[at[0]];
              if constexpr (!std::is_same_v<W, double>) {
                if (exact) {
                  out.push_back(IntegerPower(base, integers[at[1]]));
                  return;
                }
              }
              out.push_back(Truncated<W>(std::pow(static_cast<double>(base), numbers[at[1]])));
            });
    return GiveNarrowed(call, 0, type, out);
  });
}

Status RunBitwiseNot(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 1));
  if (!IsInteger(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  return MapNumbers(call, []<class W>(W v) { return Minus<W>(Minus<W>(0, v), 1); });
}

Status RunBitShift(OperatorCall& call) {
  const std::string direction = call.String("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") {
    return Err(StatusCode::kInvalidArgument, "no direction is named {}", Quoted(direction));
  }
  AG_TRY(call.CheckInputs(2, 2));
  if (!IsInteger(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  const bool left = direction == "LEFT";
  const auto width = static_cast<uint64_t>(8 * SizeOf(call.TypeOf(0)));
  // A shift to the right repeats the sign; one by a negative number is one by too many bits.
  return Calculate(call, [left, width]<class W>(W a, W b) -> W {
    const auto bits = static_cast<uint64_t>(b);
    if (bits >= width) return static_cast<W>(!left && std::is_signed_v<W> && a < W{0} ? -1 : 0);
    if constexpr (std::is_floating_point_v<W>) {
      return 0;
    } else {
      return static_cast<W>(left ? static_cast<uint64_t>(a) << bits : a >> bits);
    }
  });
}

Status RunBitCast(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 1));
  AG_LET(const DType to, DTypeFromOnnx(static_cast<int32_t>(call.Int("to", 0))));
  const DType from = call.TypeOf(0);
  const auto has_half_bytes = [](DType dtype) {
    return dtype == DType::kInt4 || dtype == DType::kUInt4 || dtype == DType::kFloat4E2M1;
  };
  if (has_half_bytes(from) || has_half_bytes(to)) return RefuseType(to);
  if (SizeOf(from) != SizeOf(to)) {
    return Err(StatusCode::kInvalidArgument, "{} and {} have different sizes", DTypeName(from),
               DTypeName(to));
  }
  AG_TRY(call.MakeBytes(0, {to, call.ShapeOf(0)}));
  const auto out = call.results()[0].Mutable<char>();
  std::ranges::copy(call.In(0).bytes(), out.begin());
  if (to == DType::kBool) std::ranges::for_each(out, [](char& c) { c = c != 0 ? 1 : 0; });
  return OkStatus();
}

Status RunShrink(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 1));
  const double bias = call.Float("bias", 0), lambd = call.Float("lambd", 0.5);
  if (!IsInteger(call.TypeOf(0)) && !IsFloat(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  return MapAs<double>(call, [&](double v) {
    return v < -lambd ? v + bias : v > lambd ? v - bias : std::isnan(v) ? v : 0;
  });
}

// Combines any number of operands from the first to the last.
template <class F>
Status Fold(OperatorCall& call, bool mean, F&& function) {
  AG_TRY(call.CheckInputs(std::max<size_t>(call.size(), 1), call.size()));
  AG_TRY(RefuseBool(call));
  for (size_t i = 1; i < call.size(); ++i) AG_TRY(call.CheckType(i, call.TypeOf(0)));
  AG_LET(const Shape all, BroadcastOf(call));
  const TensorType type{call.TypeOf(0), all};
  AG_TRY(call.MakeBytes(0, type));  // Checks the size.
  return ForWide(type.dtype, [&]<class W>() -> Status {
    std::vector<W> values = Widened<W>(call.In(0));
    Shape shape = call.ShapeOf(0);
    for (size_t i = 1; i < call.size(); ++i) {
      AG_LET(const Shape next, BroadcastShapes(shape, call.ShapeOf(i)));
      std::vector<W> out;
      CombineAll(values, shape, Widened<W>(call.In(i)), call.ShapeOf(i), next, out, function);
      values = std::move(out);
      shape = next;
    }
    if (mean) {
      for (W& value : values) value = Quotient(value, static_cast<W>(call.size()));
    }
    return GiveNarrowed(call, 0, type, values);
  });
}

// Before opset 11 the bounds were attributes. Where they cross, the upper one decides.
Status RunClip(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, call.opset() < 11 ? 1 : 3));
  const DType dtype = call.TypeOf(0);
  return ForWide(dtype, [&]<class W>() -> Status {
    auto [low, high] = LimitsOf<W>(dtype);
    if (call.opset() < 11) {
      if (call.HasAttribute("min")) low = Truncated<W>(call.Float("min", 0));
      if (call.HasAttribute("max")) high = Truncated<W>(call.Float("max", 0));
    }
    for (size_t i = 1; i < call.size(); ++i) {
      if (!call.Has(i)) continue;
      AG_TRY(call.CheckType(i, dtype));
      if (call.Type(i).NumElements() != 1) {
        return Err(StatusCode::kInvalidArgument, "input {}: expected one element, got {}", i,
                   call.Type(i).ToString());
      }
      (i == 1 ? low : high) = Widened<W>(call.In(i))[0];
    }
    std::vector<W> values = Widened<W>(call.In(0));
    for (W& value : values) value = Smaller(Larger(value, low), high);
    return GiveNarrowed(call, 0, call.Type(0), values);
  });
}

// Integers lose the bits above the lowest 4.
Tensor CutToHalfBytes(const Tensor& from, DType to) {
  Tensor tensor = Tensor::Zeros({to, from.type().shape});
  const std::vector<int64_t> values = Widened<int64_t>(from);
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t low = values[i] & 0xF;
    tensor.Put(static_cast<int64_t>(i),
               static_cast<double>(to == DType::kInt4 && low > 7 ? low - 16 : low));
  }
  return tensor;
}

// Casts from or to a narrow type.
Status CastNarrow(OperatorCall& call, DType to, Overflow overflow) {
  const TensorType type{to, call.ShapeOf(0)};
  AG_TRY(call.MakeBytes(0, type));
  const bool to_integer = to == DType::kInt4 || to == DType::kUInt4;
  if (to_integer && IsInteger(call.TypeOf(0))) {
    call.Give(0, CutToHalfBytes(call.In(0), to));
    return OkStatus();
  }
  const std::vector<double> values = call.In(0).ToDoubles();
  if (!IsNarrow(to)) {
    call.Give(0, Tensor::FromDoubles(type, values));
    return OkStatus();
  }
  const auto out = call.results()[0].Mutable<uint8_t>();
  for (size_t i = 0; i < values.size(); ++i) out[i] = DoubleToNarrow(to, values[i], overflow);
  return OkStatus();
}

// Integers that do not fit lose their upper bits; numbers that do not fit saturate.
Status CastAs(OperatorCall& call, DType to) {
  const Overflow overflow =
      call.Int("saturate", 1) != 0 ? Overflow::kSaturates : Overflow::kOverflows;
  if (to == DType::kString || call.TypeOf(0) == DType::kString) return CastStrings(call, to);
  if (IsNarrow(to) || IsNarrow(call.TypeOf(0))) return CastNarrow(call, to, overflow);
  return ForWide(call.TypeOf(0), [&]<class W>() {
    return GiveNarrowed(call, 0, {to, call.ShapeOf(0)}, Widened<W>(call.In(0)));
  });
}

Status RunCast(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 1));
  AG_LET(const DType to, DTypeFromOnnx(static_cast<int32_t>(call.Int("to", 0))));
  return CastAs(call, to);
}

Status RunCastLike(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 2));
  return CastAs(call, call.TypeOf(1));
}

#define AG_FLOATS(function) \
  [](OperatorCall& call) { return MapFloats(call, [](double v) { return function; }); }
#define AG_NUMBERS(function) \
  [](OperatorCall& call) { return MapNumbers(call, []<class W>(W v) -> W { return function; }); }
#define AG_PAIRS(run, function) \
  [](OperatorCall& call) { return run(call, []<class W>(W a, W b) -> W { return function; }); }
#define AG_BITS(function)                                                        \
  [](OperatorCall& call) {                                                       \
    return CalculateBits(call, [](uint64_t a, uint64_t b) { return function; }); \
  }
#define AG_FOLD(mean, function)                                               \
  [](OperatorCall& call) {                                                    \
    return Fold(call, mean, []<class W>(W a, W b) -> W { return function; }); \
  }

}  // namespace

std::span<const OperatorRow> ScalarOperators() {
  static constexpr OperatorRow kRows[] = {
      {"Acos", AG_FLOATS(std::acos(v))},
      {"Acosh", AG_FLOATS(std::acosh(v))},
      {"Asin", AG_FLOATS(std::asin(v))},
      {"Asinh", AG_FLOATS(std::asinh(v))},
      {"Atanh", AG_FLOATS(std::atanh(v))},
      {"Neg", AG_NUMBERS(Minus<W>(0, v))},
      {"Abs", AG_NUMBERS(v < 0 ? Minus<W>(0, v) : v)},
      {"Sign", AG_NUMBERS(v > 0   ? 1
                          : v < 0 ? Minus<W>(0, 1)
                                  : v)},
      {"Relu", AG_NUMBERS(v < 0 ? 0 : v)},
      {"Add", AG_PAIRS(Calculate, Plus(a, b))},
      {"Sub", AG_PAIRS(Calculate, Minus(a, b))},
      {"Mul", AG_PAIRS(Calculate, Times(a, b))},
      {"Div", AG_PAIRS(Calculate, Quotient(a, b))},
      {"Mod", RunMod},
      {"Pow", RunPow},
      {"Equal", AG_PAIRS(CompareElements, a == b)},
      {"Less", AG_PAIRS(CompareElements, a < b)},
      {"LessOrEqual", AG_PAIRS(CompareElements, a <= b)},
      {"Greater", AG_PAIRS(CompareElements, a > b)},
      {"GreaterOrEqual", AG_PAIRS(CompareElements, a >= b)},
      {"BitwiseAnd", AG_BITS(a & b)},
      {"BitwiseOr", AG_BITS(a | b)},
      {"BitwiseXor", AG_BITS(a ^ b)},
      {"BitwiseNot", RunBitwiseNot},
      {"BitShift", RunBitShift},
      {"BitCast", RunBitCast},
      {"Max", AG_FOLD(false, Larger(a, b))},
      {"Min", AG_FOLD(false, Smaller(a, b))},
      {"Sum", AG_FOLD(false, Plus(a, b))},
      {"Mean", AG_FOLD(true, Plus(a, b))},
      {"Clip", RunClip},
      {"Shrink", RunShrink},
      {"Cast", RunCast, ResultSizes::kFromShapes, true},
      {"CastLike", RunCastLike, ResultSizes::kFromShapes, true},
  };
  return kRows;
}

#undef AG_FLOATS
#undef AG_NUMBERS
#undef AG_PAIRS
#undef AG_BITS
#undef AG_FOLD

}  // namespace ag::onnx_operators
