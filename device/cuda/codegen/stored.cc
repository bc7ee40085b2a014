#include "device/cuda/codegen/stored.h"

#include <cmath>

#include "base/text.h"
#include "graph/tensor.h"

namespace ag::cuda {

StatusOr<std::string_view> StoredType(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "float";
    case DType::kFloat16:
      return "ag_f16";
    case DType::kBFloat16:
      return "ag_bf16";
    case DType::kFloat64:
      return "double";
    case DType::kInt64:
      return "long long";
    case DType::kInt32:
      return "int";
    case DType::kInt16:
      return "short";
    case DType::kInt8:
      return "signed char";
    case DType::kUInt8:
      return "unsigned char";
    case DType::kBool:
      return "ag_bool";
    case DType::kUInt16:
      return "unsigned short";
    case DType::kUInt32:
      return "unsigned";
    default:
      break;
  }
  return Err(StatusCode::kUnimplemented, "element type {}", DTypeName(dtype));
}

std::string_view ComputedType(DType dtype) {
  if (dtype == DType::kBool) return "bool";
  if (dtype == DType::kFloat64) return "double";
  return IsFloat(dtype) ? "float" : "long long";
}

namespace {

// Puts a negative literal in brackets, so that it may follow any operator.
std::string Bracketed(std::string literal) {
  return literal[0] == '-' ? "(" + literal + ")" : literal;
}

}  // namespace

std::string IntegerLiteral(int64_t value) {
  // C++ has no literal of the lowest one.
  if (value == INT64_MIN) return "(-9223372036854775807ll - 1)";
  return Bracketed(fmt::format("{}ll", value));
}

std::string Literal(double value, DType dtype) {
  if (dtype == DType::kBool) return value != 0 ? "true" : "false";
  if (!IsFloat(dtype)) {
    RoundTo(dtype, {&value, 1});
    return IntegerLiteral(Tensor::FromDoubles({DType::kInt64, {}}, {&value, 1}).As<int64_t>()[0]);
  }
  const bool is_double = dtype == DType::kFloat64;
  if (!is_double) value = static_cast<float>(value);
  if (std::isnan(value)) return is_double ? "(double)ag_nan()" : "ag_nan()";
  if (std::isinf(value)) {
    const std::string infinity = is_double ? "(double)ag_inf()" : "ag_inf()";
    return value < 0 ? "(-" + infinity + ")" : infinity;
  }
  std::string digits = is_double ? FormatDouble(value) : fmt::format("{}", float(value));
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return Bracketed(digits + (is_double ? "" : "f"));
}

}  // namespace ag::cuda
