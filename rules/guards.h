// The one registry of the named pure functions that rules may call: guards and attribute
// arithmetic.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rules/bindings.h"

namespace ag {

// What a function reads of its tensors. A change of a graph that leaves a tensor's type as it is
// cannot change what asks of types alone.
enum class Asks : uint8_t { kTypes, kGraph };

struct RuleFunction {
  std::string_view name;
  std::string_view signature;  // For docs/rules.md: "dim(x, n)".
  std::string_view what;       // What it returns, in one line.
  int arity_min;
  int arity_max;  // -1: no limit.
  Asks asks;
  // nullopt when the arguments have the wrong kinds or there is no value.
  std::optional<Value> (*call)(const TensorFacts& facts, std::span<const Value> arguments);
};

const RuleFunction* FindFunction(std::string_view name);
std::vector<RuleFunction> AllFunctions();  // By name.

// Those of axis_functions.cc.
std::span<const RuleFunction> AxisFunctions();

// The value of a small float constant that holds one number in all its elements; nullopt otherwise.
std::optional<double> ConstantNumber(const Graph& graph, Edge edge);

}  // namespace ag
