#include "graph/types.h"

#include <array>

#include "absl/strings/str_join.h"

namespace ag {
namespace {

struct DTypeRow {
  DType dtype;
  std::string_view name;
  int64_t bytes;
};

constexpr std::array<DTypeRow, 21> kDTypes = {{
    {DType::kFloat32, "f32", 4},       {DType::kFloat16, "f16", 2},
    {DType::kBFloat16, "bf16", 2},     {DType::kFloat64, "f64", 8},
    {DType::kInt64, "i64", 8},         {DType::kInt32, "i32", 4},
    {DType::kInt16, "i16", 2},         {DType::kInt8, "i8", 1},
    {DType::kUInt8, "u8", 1},          {DType::kBool, "bool", 1},
    {DType::kUInt16, "u16", 2},        {DType::kUInt32, "u32", 4},
    {DType::kUInt64, "u64", 8},        {DType::kString, "string", 0},
    {DType::kFloat8E4M3, "f8e4m3", 1}, {DType::kFloat8E4M3Fnuz, "f8e4m3fnuz", 1},
    {DType::kFloat8E5M2, "f8e5m2", 1}, {DType::kFloat8E5M2Fnuz, "f8e5m2fnuz", 1},
    {DType::kFloat4E2M1, "f4e2m1", 1}, {DType::kInt4, "i4", 1},
    {DType::kUInt4, "u4", 1},
}};

const DTypeRow& RowOf(DType dtype) {
  AG_CHECK(IsDType(static_cast<int64_t>(dtype)));
  return kDTypes[static_cast<size_t>(dtype) - 1];
}

}  // namespace

bool IsDType(int64_t number) {
  return number >= 1 && number <= static_cast<int64_t>(kDTypes.size());
}

int64_t SizeOf(DType dtype) { return RowOf(dtype).bytes; }

std::string_view DTypeName(DType dtype) { return RowOf(dtype).name; }

StatusOr<DType> ParseDType(std::string_view name) {
  for (const DTypeRow& row : kDTypes) {
    if (row.name == name) return row.dtype;
  }
  return Err(StatusCode::kInvalidArgument, "unknown element type '{}'", name);
}

bool IsFloat(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16 ||
         dtype == DType::kFloat64;
}

bool IsInteger(DType dtype) {
  return !IsFloat(dtype) && !IsNarrow(dtype) && dtype != DType::kBool && dtype != DType::kString;
}

bool IsNarrow(DType dtype) { return dtype > DType::kString; }

int64_t NumElements(std::span<const int64_t> shape) {
  int64_t product = 1;
  bool empty = false;
  for (const int64_t size : shape) {
    empty |= size == 0;
    if (__builtin_mul_overflow(product, size, &product)) product = kElementsOverflow;
  }
  return empty ? 0 : std::min(product, kElementsOverflow);
}

std::string ShapeToString(std::span<const int64_t> shape) {
  return fmt::format("[{}]", absl::StrJoin(shape, ","));
}

std::string TensorType::ToString() const {
  return fmt::format("{}{}", DTypeName(dtype), ShapeToString(shape));
}

Status CheckType(const TensorType& type) {
  if (type.shape.size() > kRankMax) {
    return Err(StatusCode::kInvalidArgument, "rank {} is above {}", type.shape.size(), kRankMax);
  }
  for (const int64_t size : type.shape) {
    if (size < 0) {
      return Err(StatusCode::kInvalidArgument, "negative size in {}", type.ToString());
    }
  }
  int64_t elements = 1;
  for (const int64_t size : type.shape) {
    if (size > 0 && __builtin_mul_overflow(elements, size, &elements)) elements = kElementsOverflow;
    if (elements > kElementsMax) {
      return Err(StatusCode::kInvalidArgument, "{} has more than 2^40 elements", type.ToString());
    }
  }
  return OkStatus();
}

}  // namespace ag
