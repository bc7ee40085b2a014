// The only registry of the named functions that rules may call in guards and attributes. Pure
// functions over an immutable table.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "rules/language/bindings.h"

namespace ag {

// What a function reads of its tensors. A change that keeps a tensor's type cannot change the
// answer of a function that reads only types.
enum class Asks : uint8_t { kTypes, kGraph };

struct RuleFunction {
  std::string_view name;
  std::string_view signature;  // As in docs/rules.md: "dim(x, n)".
  std::string_view what;       // One line on the result.
  int arity_min;
  int arity_max;  // -1: no limit.
  Asks asks;
  // Returns the value. nullopt: arguments of the wrong kinds, or no value.
  std::optional<Value> (*call)(const TensorFacts& facts, std::span<const Value> arguments);
};

const RuleFunction* FindFunction(std::string_view name);
std::vector<RuleFunction> AllFunctions();  // Sorted by name.

// Returns the functions of axis_functions.cc.
std::span<const RuleFunction> AxisFunctions();

// Returns the number that a small float constant holds in all its elements; nullopt: not such a
// constant.
std::optional<double> ConstantNumber(const Graph& graph, Edge edge);

}  // namespace ag
