// Helpers for the functions of the registry (rules/language/guards.h): they read arguments and make
// results. Pure functions.
#pragma once

#include <optional>
#include <span>

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

}  // namespace ag
