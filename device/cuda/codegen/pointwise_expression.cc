// The generated text of each element-wise operator; graph/reference/reference_unary.cc and
// reference_binary.cc define its meaning.
#include <cmath>
#include <limits>

#include "device/cuda/codegen/pointwise.h"
#include "graph/reference/function_numbers.h"

namespace ag::cuda {
namespace {

// Returns the value that the integer type keeps of a number beyond its ends: the nearest.
std::string Within(DType dtype, const std::string& value) {
  const auto ends = [&](std::string_view low, std::string_view high) {
    return fmt::format("ag_within({}, {}, {})", value, low, high);
  };
  switch (dtype) {
    case DType::kInt32:
      return ends("-2147483648ll", "2147483647ll");
    case DType::kInt16:
      return ends("-32768", "32767");
    case DType::kInt8:
      return ends("-128", "127");
    case DType::kUInt32:
      return ends("0", "4294967295ll");
    case DType::kUInt16:
      return ends("0", "65535");
    case DType::kUInt8:
      return ends("0", "255");
    default:
      return value;
  }
}

// Returns x between bounds; the upper bound wins, as in ONNX.
std::string Clip(const Node& node, const std::string& x, DType dtype) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const double min = node.Float("min"), max = node.Float("max");
  std::string value = x;
  if (min != -kInf) value = fmt::format("ag_at_least({}, {})", value, Literal(min, dtype));
  if (max != kInf) value = fmt::format("ag_at_most({}, {})", value, Literal(max, dtype));
  return value;
}

std::string Cast(DType from, DType to, const std::string& x) {
  if (to == DType::kBool) return from == DType::kBool ? x : fmt::format("{} != 0", x);
  if (IsFloat(to)) {
    const std::string wide = fmt::format("({}){}", ComputedType(to), x);
    if (to == DType::kFloat16) return fmt::format("ag_rounded<ag_f16>({})", wide);
    if (to == DType::kBFloat16) return fmt::format("ag_rounded<ag_bf16>({})", wide);
    return wide;
  }
  if (IsFloat(from)) return Within(to, fmt::format("ag_whole({})", x));
  return from == DType::kBool ? fmt::format("(long long){}", x) : Wrapped(to, x);
}

// Writes squares and cubes as products; other powers use the general function.
std::string Power(const Node& node, const std::string& x, const std::string& exponent) {
  const DType dtype = node.outputs[0].dtype;
  if (IsFloat(dtype) && exponent == Literal(2, dtype)) return fmt::format("{0} * {0}", x);
  if (IsFloat(dtype) && exponent == Literal(3, dtype)) return fmt::format("{0} * {0} * {0}", x);
  return fmt::format("ag_power({}, {})", x, exponent);
}

// Returns the value of an operator of integers that wraps; nothing for others.
std::string IntegerExpression(const Node& node, std::span<const std::string> x) {
  switch (node.op) {
    case OpKind::kAdd:
      return fmt::format("ag_add({}, {})", x[0], x[1]);
    case OpKind::kSub:
      return fmt::format("ag_sub({}, {})", x[0], x[1]);
    case OpKind::kMul:
      return fmt::format("ag_mul({}, {})", x[0], x[1]);
    case OpKind::kDiv:
      return fmt::format("ag_div({}, {})", x[0], x[1]);
    case OpKind::kPow:
      return fmt::format("ag_power({}, {})", x[0], x[1]);
    case OpKind::kNeg:
      return fmt::format("ag_sub(0, {})", x[0]);
    case OpKind::kAbs:
      return fmt::format("Abs({})", x[0]);
    case OpKind::kClip:
      return Clip(node, x[0], node.outputs[0].dtype);
    default:
      return "";
  }
}

// Returns the call of the operator's function of graph/functions.def. `from`: the operands' type.
std::string Function(const Node& node, std::span<const std::string> x, DType from) {
  std::vector<std::string> arguments(x.begin(), x.end());
  const std::array<double, 2> numbers = FunctionNumbers(node);
  for (size_t i = 0; i < Info(node.op).attributes.size(); ++i) {
    arguments.push_back(Literal(numbers[i], from));
  }
  return fmt::format("{}({})", Info(node.op).name, fmt::join(arguments, ", "));
}

}  // namespace

std::string Wrapped(DType dtype, const std::string& value) {
  if (dtype == DType::kInt64) return value;
  return fmt::format("(long long)({}){}", *StoredType(dtype), value);
}

StatusOr<std::string> PointwiseExpression(const Graph& graph, const Node& node,
                                          std::span<const std::string> x) {
  if (const DType dtype = node.outputs[0].dtype; IsInteger(dtype)) {
    const std::string value = IntegerExpression(node, x);
    if (!value.empty()) return Wrapped(dtype, value);
  }
  if (node.op == OpKind::kAdd) return fmt::format("{} + {}", x[0], x[1]);
  if (node.op == OpKind::kSub) return fmt::format("{} - {}", x[0], x[1]);
  if (node.op == OpKind::kMul) return fmt::format("{} * {}", x[0], x[1]);
  if (node.op == OpKind::kNeg) return fmt::format("-{}", x[0]);
  if (node.op == OpKind::kNot) return fmt::format("!{}", x[0]);
  if (node.op == OpKind::kDiv) return fmt::format("ag_div({}, {})", x[0], x[1]);
  if (node.op == OpKind::kPow) return Power(node, x[0], x[1]);
  if (node.op == OpKind::kMin) return fmt::format("ag_min({}, {})", x[0], x[1]);
  if (node.op == OpKind::kMax) return fmt::format("ag_max({}, {})", x[0], x[1]);
  if (node.op == OpKind::kMod) {
    return fmt::format("ag_{}({}, {})", node.Int("fmod") != 0 ? "remainder" : "modulo", x[0], x[1]);
  }
  if (node.op == OpKind::kEqual) return fmt::format("{} == {}", x[0], x[1]);
  if (node.op == OpKind::kGreater) return fmt::format("{} > {}", x[0], x[1]);
  if (node.op == OpKind::kLess) return fmt::format("{} < {}", x[0], x[1]);
  if (node.op == OpKind::kAnd) return fmt::format("{} && {}", x[0], x[1]);
  if (node.op == OpKind::kOr) return fmt::format("{} || {}", x[0], x[1]);
  if (node.op == OpKind::kWhere) return fmt::format("{} ? {} : {}", x[0], x[1], x[2]);
  if (node.op == OpKind::kBatchNorm) {
    return fmt::format("({} - {}) / ag_sqrt({} + {}) * {} + {}", x[0], x[3], x[4],
                       Literal(node.Float("epsilon"), node.outputs[0].dtype), x[1], x[2]);
  }
  const DType from = graph.type(node.inputs[0]).dtype;
  if (node.op == OpKind::kClip) return Clip(node, x[0], from);
  if (node.op == OpKind::kCast) return Cast(from, node.outputs[0].dtype, x[0]);
  if (node.op == OpKind::kGelu) {
    const bool none = node.attributes->String("approximate") == "none";
    return fmt::format("ag_gelu{}({})", none ? "" : "_tanh", x[0]);
  }
  if (Has(node.op, kElementwise)) return Function(node, x, from);
  return Err(StatusCode::kUnimplemented, "is not element-wise");
}

}  // namespace ag::cuda
