// Elements of tensors as C++ types, for kernels that are templates over them. Pure functions.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/status.h"
#include "graph/half.h"
#include "graph/types.h"

namespace ag::onnx_operators {

// The two 16-bit floating point types: numbers convert from and to them, with one rounding.
struct Float16 {
  uint16_t bits = 0;
  Float16() = default;
  template <class N, class = std::enable_if_t<std::is_arithmetic_v<N>>>
  Float16(N value) : bits(DoubleToHalf(static_cast<double>(value))) {}
  operator double() const { return HalfToFloat(bits); }
};
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  template <class N, class = std::enable_if_t<std::is_arithmetic_v<N>>>
  BFloat16(N value) : bits(DoubleToBFloat16(static_cast<double>(value))) {}
  operator double() const { return BFloat16ToFloat(bits); }
};

template <class T>
inline constexpr bool kIsFloating =
    std::is_floating_point_v<T> || std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

// The type in which kernels compute on elements of type T: double for every floating point type,
// else a 64-bit integer of T's sign. Stores round or wrap once.
template <class T>
using Wide = std::conditional_t<kIsFloating<T>, double,
                                std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

template <class T>
constexpr DType DTypeOf() {
  if constexpr (std::is_same_v<T, float>) return DType::kFloat32;
  if constexpr (std::is_same_v<T, Float16>) return DType::kFloat16;
  if constexpr (std::is_same_v<T, BFloat16>) return DType::kBFloat16;
  if constexpr (std::is_same_v<T, double>) return DType::kFloat64;
  if constexpr (std::is_same_v<T, int64_t>) return DType::kInt64;
  if constexpr (std::is_same_v<T, int32_t>) return DType::kInt32;
  if constexpr (std::is_same_v<T, int16_t>) return DType::kInt16;
  if constexpr (std::is_same_v<T, int8_t>) return DType::kInt8;
  if constexpr (std::is_same_v<T, uint8_t>) return DType::kUInt8;
  if constexpr (std::is_same_v<T, bool>) return DType::kBool;
  if constexpr (std::is_same_v<T, uint16_t>) return DType::kUInt16;
  if constexpr (std::is_same_v<T, uint32_t>) return DType::kUInt32;
  return DType::kUInt64;
}

inline Status RefuseType(DType dtype) {
  return Err(StatusCode::kUnimplemented, "elements of {} are not supported", DTypeName(dtype));
}

// Calls run<T>() for the C++ type of `dtype`. kUnimplemented: no such type in this class.
template <class F>
Status ForFloats(DType dtype, F&& run) {
  switch (dtype) {
    case DType::kFloat32:
      return run.template operator()<float>();
    case DType::kFloat16:
      return run.template operator()<Float16>();
    case DType::kBFloat16:
      return run.template operator()<BFloat16>();
    case DType::kFloat64:
      return run.template operator()<double>();
    default:
      return RefuseType(dtype);
  }
}
template <class F>
Status ForIntegers(DType dtype, F&& run) {
  switch (dtype) {
    case DType::kInt64:
      return run.template operator()<int64_t>();
    case DType::kInt32:
      return run.template operator()<int32_t>();
    case DType::kInt16:
      return run.template operator()<int16_t>();
    case DType::kInt8:
      return run.template operator()<int8_t>();
    case DType::kUInt8:
      return run.template operator()<uint8_t>();
    case DType::kUInt16:
      return run.template operator()<uint16_t>();
    case DType::kUInt32:
      return run.template operator()<uint32_t>();
    case DType::kUInt64:
      return run.template operator()<uint64_t>();
    default:
      return RefuseType(dtype);
  }
}
template <class F>
Status ForNumbers(DType dtype, F&& run) {
  return IsFloat(dtype) ? ForFloats(dtype, run) : ForIntegers(dtype, run);
}
// Numbers and bool.
template <class F>
Status ForAny(DType dtype, F&& run) {
  return dtype == DType::kBool ? run.template operator()<bool>() : ForNumbers(dtype, run);
}

}  // namespace ag::onnx_operators
