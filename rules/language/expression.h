// Attribute expressions and guards: integers, floats, lists, and calls of the registry's functions,
// over the names that a rule has bound. An expression without a value (an axis out of range, a
// division with a remainder) is nullopt; then a guard does not hold and a target does not apply.
// Plain data and pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "rules/language/bindings.h"

namespace ag {

struct RuleFunction;  // rules/language/guards.h

struct Expression {
  enum class Kind : uint8_t { kInt, kFloat, kString, kVariable, kList, kCall, kOperator };
  Kind kind = Kind::kInt;
  int64_t integer = 0;
  double number = 0;
  std::string name;  // Variable, function, operator ("+", "=="), or the string.
  const RuleFunction* function = nullptr;  // kCall.
  std::vector<Expression> arguments;       // kList, kCall, kOperator.
  bool indexed = false;                    // x[i]
  std::string index_name;                  // The i of x[i].
  bool spread = false;                     // "e...": e for each i.
  int index = -1;                          // Index letter of x[i] or of the spread.
  int slot = -1;                           // kVariable.
  size_t offset = 0;                       // Its place in the file.
};

// The names for an evaluation. `position` is the i of this element; -1: outside families.
struct Scope {
  TensorFacts facts;
  const Bindings& bindings;
  int position = -1;
};

// Returns the value; nullopt: it has none.
std::optional<Value> Evaluate(const Expression& expression, const Scope& scope);

// Most functions have at most so many arguments.
using ArgumentValues = absl::InlinedVector<Value, 4>;
// Returns the values of arguments or list elements; a spread gives one value for each i.
std::optional<ArgumentValues> EvaluateAll(const std::vector<Expression>& expressions,
                                          const Scope& scope);

// Returns true when the guard has a value that is not zero.
bool Holds(const Expression& guard, const Scope& scope);

// Returns the value as the operator's attribute `name`; an integer becomes a float where the
// operator table has one. nullopt: a tensor or a label.
std::optional<AttributeValue> ToAttribute(const Value& value, OpKind op, std::string_view name);
Value ToValue(const AttributeValue& value);

// Returns true for equal values. An integer and a float compare as floats. Two floats are equal
// when they differ by at most the last places of f32, because exporters write a constant in f32 or
// f64.
bool SameValue(const Value& a, const Value& b);
// Returns true when a number in a rule stands for all numbers that differ from it in the last
// places. A number with few bits (whole numbers, halves, quarters, ...) is exact in every element
// type and stands only for itself.
bool IsApproximate(double value);
bool CloseTo(double a, double b, double tolerance);

}  // namespace ag
