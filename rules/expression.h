// Attribute expressions and guards: integers, floats, lists and calls of the registry's functions
// over what a rule has bound. Evaluation is pure; what has no value (an axis out of range, a
// division with a rest) is nullopt: a guard then does not hold, a target then does not apply.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rules/bindings.h"

namespace ag {

struct RuleFunction;  // rules/guards.h

struct Expression {
  enum class Kind : uint8_t { kInt, kFloat, kString, kVariable, kList, kCall, kOperator };
  Kind kind = Kind::kInt;
  int64_t integer = 0;
  double number = 0;
  std::string name;  // Variable, function or operator: "+", "==", ...; or the string.
  const RuleFunction* function = nullptr;  // kCall.
  std::vector<Expression> arguments;       // kList, kCall, kOperator.
  bool indexed = false;                    // x[i]
  std::string index_name;                  // The i of x[i].
  bool spread = false;                     // "e...": e for each i.
  int index = -1;                          // Index letter of x[i] or of the spread.
  int slot = -1;                           // kVariable.
  size_t offset = 0;                       // Where it stands in the file.
};

// Where names are looked up. `position` is the i of this element; -1 outside of families.
struct Scope {
  TensorFacts facts;
  const Rewrite::Bindings& bindings;
  int position = -1;
};

std::optional<Value> Evaluate(const Expression& expression, const Scope& scope);

// Evaluates arguments or list elements, spreads multiplied out.
std::optional<std::vector<Value>> EvaluateAll(const std::vector<Expression>& expressions,
                                              const Scope& scope);

// True when the guard has a value that is not zero.
bool Holds(const Expression& guard, const Scope& scope);

// As the value of the operator's attribute `name`, an integer as a float where the operator table
// says so; nullopt for tensors and labels.
std::optional<AttributeValue> ToAttribute(const Value& value, OpKind op, std::string_view name);
Value ToValue(const AttributeValue& value);

// Equal values; an integer and a float compare as floats, and two floats are equal when they differ
// by no more than the last places of f32 (exporters write the same constant in f32 and f64).
bool SameValue(const Value& a, const Value& b);
// Whether a number that a rule writes stands for all that differ from it in their last places: what
// has few bits (whole numbers, halves, quarters, ...) is exact in every element type and means
// itself.
bool IsApproximate(double value);
bool CloseTo(double a, double b, double tolerance);

}  // namespace ag
