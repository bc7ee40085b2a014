#include "plan/spec/policy.h"

#include <array>
#include <cmath>

#include "base/text.h"

namespace ag {
namespace {

constexpr std::array<std::string_view, 4> kPrecisions = {"fp32", "tf32", "fp16", "bf16"};

Status SetPrecision(std::string_view value, Policy* policy) {
  for (const std::string_view known : kPrecisions) {
    if (known != value) continue;
    policy->precision = value;
    return OkStatus();
  }
  return Err(StatusCode::kInvalidArgument,
             "policy: precision: expected fp32, tf32, fp16 or bf16, got '{}'", value);
}

Status SetTolerance(std::string_view value, Policy* policy) {
  const StatusOr<double> number = ParseDouble(value);
  if (!number.ok() || !std::isfinite(*number) || *number < 0) {
    return Err(StatusCode::kInvalidArgument,
               "policy: tolerance: expected a finite number that is not negative, got '{}'", value);
  }
  policy->tolerance = *number;
  return OkStatus();
}

Status SetFlag(std::string_view key, std::string_view value, bool* flag) {
  if (value != "0" && value != "1") {
    return Err(StatusCode::kInvalidArgument, "policy: {}: expected 0 or 1, got '{}'", key, value);
  }
  *flag = value == "1";
  return OkStatus();
}

Status SetField(std::string_view key, std::string_view value, Policy* policy) {
  if (key == "precision") return SetPrecision(value, policy);
  if (key == "tolerance") return SetTolerance(value, policy);
  if (key == "cold_cache") return SetFlag(key, value, &policy->cold_cache);
  if (key == "nonfinite_strict") return SetFlag(key, value, &policy->nonfinite_strict);
  return Err(StatusCode::kInvalidArgument, "policy: unknown key '{}'", key);
}

}  // namespace

double DefaultTolerance(std::string_view precision) {
  if (precision == "tf32") return 5e-3;
  if (precision == "fp16") return 1e-2;
  return precision == "bf16" ? 5e-2 : 1e-3;
}

std::string_view CoarsestPrecision(std::string_view precision, const Graph& graph) {
  std::string_view coarsest = precision;
  for (NodeId id = 0; id < graph.size(); ++id) {
    for (const TensorType& type : graph.node(id).outputs) {
      if (type.dtype == DType::kBFloat16) return "bf16";
      if (type.dtype == DType::kFloat16 && coarsest != "bf16") coarsest = "fp16";
    }
  }
  return coarsest;
}

std::string Policy::Text() const {
  return fmt::format("precision={};tolerance={};cold_cache={};nonfinite_strict={}", precision,
                     FormatDouble(tolerance), cold_cache ? 1 : 0, nonfinite_strict ? 1 : 0);
}

StatusOr<Policy> ParsePolicy(std::string_view text) {
  Policy policy;
  for (const std::string_view item : Split(text, ';')) {
    const std::string_view field = Trim(item);
    if (field.empty()) continue;
    const size_t equals = field.find('=');
    if (equals == std::string_view::npos) {
      return Err(StatusCode::kInvalidArgument, "policy: expected key=value, got '{}'", field);
    }
    AG_TRY(SetField(field.substr(0, equals), field.substr(equals + 1), &policy));
  }
  return policy;
}

}  // namespace ag
