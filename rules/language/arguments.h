// Helpers for the functions of the registry (rules/language/guards.h): they read arguments and make
// results. Pure functions.
#pragma once

#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include "rules/language/bindings.h"

namespace ag {

using Arguments = std::span<const Value>;
using Result = std::optional<Value>;  // nullopt: there is no value.

// Returns argument i; null: it is missing or not a T.
template <class T>
const T* Get(Arguments arguments, size_t i) {
  return i < arguments.size() ? std::get_if<T>(&arguments[i]) : nullptr;
}

inline Result Truth(bool value) { return int64_t{value}; }

inline Ints ToInts(const Shape& shape) { return {shape.begin(), shape.end()}; }

// Returns the shape of argument i if it is a tensor, or the list itself.
inline std::optional<Shape> ShapeOf(const TensorFacts& facts, Arguments arguments, size_t i) {
  if (const Edge* edge = Get<Edge>(arguments, i)) return facts.type(*edge).shape;
  if (const Ints* list = Get<Ints>(arguments, i)) return Shape(list->begin(), list->end());
  return std::nullopt;
}

// Returns the position of an axis that may count from the last; nullopt: the shape lacks it.
inline std::optional<int64_t> AxisIn(const Shape& shape, int64_t axis) {
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t at = axis < 0 ? axis + rank : axis;
  return at < 0 || at >= rank ? std::nullopt : std::optional(at);
}

// Reads argument i as a T; a Shape may also be given as a tensor. The result is empty when it is
// not a T.
template <class T>
auto ReadAs(const TensorFacts& facts, Arguments arguments, size_t i) {
  if constexpr (std::is_same_v<T, Shape>) {
    return ShapeOf(facts, arguments, i);
  } else {
    return Get<T>(arguments, i);
  }
}

template <class... P, size_t... i>
Result CallWith(Result (*function)(const TensorFacts&, P...), const TensorFacts& facts,
                Arguments arguments, std::index_sequence<i...>) {
  const auto read = std::tuple(ReadAs<std::remove_cvref_t<P>>(facts, arguments, i)...);
  if (!(std::get<i>(read) && ...)) return std::nullopt;
  return function(facts, *std::get<i>(read)...);
}

template <class... P>
constexpr auto IndicesOf(Result (*)(const TensorFacts&, P...)) {
  return std::index_sequence_for<P...>();
}

// `function`, which takes typed arguments, in the form of the registry: there is no value when an
// argument is missing or of another kind.
template <auto function>
Result Typed(const TensorFacts& facts, Arguments arguments) {
  return CallWith(function, facts, arguments, IndicesOf(function));
}

}  // namespace ag
