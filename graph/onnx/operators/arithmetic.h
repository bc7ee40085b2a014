// Arithmetic on Wide<T>: integers wrap around, minima and maxima keep NaN. Pure functions.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace ag::onnx_operators {

template <class W>
W Plus(W a, W b) {
  if constexpr (std::is_floating_point_v<W>) return a + b;
  return static_cast<W>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
template <class W>
W Minus(W a, W b) {
  if constexpr (std::is_floating_point_v<W>) return a - b;
  return static_cast<W>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
template <class W>
W Times(W a, W b) {
  if constexpr (std::is_floating_point_v<W>) return a * b;
  return static_cast<W>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
template <class W>
bool IsNan(W a) {
  if constexpr (std::is_floating_point_v<W>) return std::isnan(a);
  return false;
}
template <class W>
W Larger(W a, W b) {
  return IsNan(a) || a > b ? a : b;
}
template <class W>
W Smaller(W a, W b) {
  return IsNan(a) || a < b ? a : b;
}
// A total order in which NaN is above all numbers.
template <class W>
bool Precedes(W a, W b) {
  return a < b || (IsNan(b) && !IsNan(a));
}

}  // namespace ag::onnx_operators
