#include "rules/language/expression.h"

#include <algorithm>
#include <cmath>

#include "rules/language/guards.h"

namespace ag {
namespace {

using MaybeValue = std::optional<Value>;

std::optional<double> AsNumber(const Value& value) {
  if (const auto* i = std::get_if<int64_t>(&value)) return static_cast<double>(*i);
  if (const auto* d = std::get_if<double>(&value)) return *d;
  return std::nullopt;
}

MaybeValue IntegerArithmetic(char op, int64_t a, int64_t b) {
  int64_t out = 0;
  bool overflow = false;
  if (op == '+') overflow = __builtin_add_overflow(a, b, &out);
  if (op == '-') overflow = __builtin_sub_overflow(a, b, &out);
  if (op == '*') overflow = __builtin_mul_overflow(a, b, &out);
  if (op == '/') {
    if (b == 0 || b == -1 || a % b != 0) return std::nullopt;
    out = a / b;
  }
  if (overflow) return std::nullopt;
  return out;
}

// Adds or subtracts element by element, for example pads.
MaybeValue ListArithmetic(char op, const Ints& a, const Ints& b) {
  if (a.size() != b.size() || (op != '+' && op != '-')) return std::nullopt;
  Ints out;
  for (size_t i = 0; i < a.size(); ++i) {
    const MaybeValue element = IntegerArithmetic(op, a[i], b[i]);
    if (!element.has_value()) return std::nullopt;
    out.push_back(std::get<int64_t>(*element));
  }
  return out;
}

MaybeValue ApplyArithmetic(char op, const Value& a, const Value& b) {
  const auto* left = std::get_if<Ints>(&a);
  const auto* right = std::get_if<Ints>(&b);
  if (left != nullptr && right != nullptr) return ListArithmetic(op, *left, *right);
  const auto* i = std::get_if<int64_t>(&a);
  const auto* j = std::get_if<int64_t>(&b);
  if (i != nullptr && j != nullptr) return IntegerArithmetic(op, *i, *j);
  const auto x = AsNumber(a);
  const auto y = AsNumber(b);
  if (!x.has_value() || !y.has_value()) return std::nullopt;
  switch (op) {
    case '+':
      return *x + *y;
    case '-':
      return *x - *y;
    case '*':
      return *x * *y;
    default:
      return *x / *y;
  }
}

MaybeValue Compare(std::string_view op, const Value& a, const Value& b) {
  if (op == "==" || op == "!=") return int64_t{SameValue(a, b) == (op == "==")};
  const auto x = AsNumber(a);
  const auto y = AsNumber(b);
  if (!x.has_value() || !y.has_value()) return std::nullopt;
  if (op == "<") return int64_t{*x < *y};
  if (op == "<=") return int64_t{*x <= *y};
  if (op == ">") return int64_t{*x > *y};
  return int64_t{*x >= *y};
}

MaybeValue Operate(const Expression& e, const ArgumentValues& operands) {
  if (e.name == "neg") return ApplyArithmetic('-', int64_t{0}, operands[0]);
  const bool arithmetic = e.name.size() == 1 && e.name != "<" && e.name != ">";
  return arithmetic ? ApplyArithmetic(e.name[0], operands[0], operands[1])
                    : Compare(e.name, operands[0], operands[1]);
}

MaybeValue MakeList(const ArgumentValues& elements) {
  Ints list;
  for (const Value& element : elements) {
    const auto* integer = std::get_if<int64_t>(&element);
    if (integer == nullptr) return std::nullopt;
    list.push_back(*integer);
  }
  return list;
}

}  // namespace

std::optional<Value> Evaluate(const Expression& e, const Scope& scope) {
  switch (e.kind) {
    case Expression::Kind::kInt:
      return e.integer;
    case Expression::Kind::kFloat:
      return e.number;
    case Expression::Kind::kString:
      return e.name;
    case Expression::Kind::kVariable: {
      const Value& value = scope.bindings.At(e.slot, e.indexed ? std::max(scope.position, 0) : 0);
      return IsBound(value) ? MaybeValue(value) : std::nullopt;
    }
    default:
      break;
  }
  const auto arguments = EvaluateAll(e.arguments, scope);
  if (!arguments.has_value()) return std::nullopt;
  if (e.kind == Expression::Kind::kList) return MakeList(*arguments);
  if (e.kind == Expression::Kind::kOperator) return Operate(e, *arguments);
  const int n = static_cast<int>(arguments->size());
  const RuleFunction& f = *e.function;
  if (n < f.arity_min || (f.arity_max >= 0 && n > f.arity_max)) return std::nullopt;
  return f.call(scope.facts, *arguments);
}

std::optional<ArgumentValues> EvaluateAll(const std::vector<Expression>& expressions,
                                          const Scope& scope) {
  ArgumentValues values;
  for (const Expression& e : expressions) {
    const int n = e.spread ? scope.bindings.counts[e.index] : 1;
    for (int i = 0; i < n; ++i) {
      const Scope inner{scope.facts, scope.bindings, e.spread ? i : scope.position};
      auto value = Evaluate(e, inner);
      if (!value.has_value()) return std::nullopt;
      values.push_back(*std::move(value));
    }
  }
  return values;
}

bool Holds(const Expression& guard, const Scope& scope) {
  const auto value = Evaluate(guard, scope);
  return value.has_value() && AsNumber(*value).value_or(0) != 0;
}

std::optional<AttributeValue> ToAttribute(const Value& value, OpKind op, std::string_view name) {
  if (const auto* i = std::get_if<int64_t>(&value)) {
    for (const AttributeSchema& schema : Info(op).attributes) {
      if (schema.name == name && schema.kind == 'f') return static_cast<double>(*i);
    }
    return *i;
  }
  if (const auto* d = std::get_if<double>(&value)) return *d;
  if (const auto* l = std::get_if<Ints>(&value)) return *l;
  if (const auto* s = std::get_if<std::string>(&value)) return *s;
  return std::nullopt;
}

Value ToValue(const AttributeValue& value) {
  return std::visit([](const auto& v) -> Value { return v; }, value);
}

bool IsApproximate(double value) {
  if (!std::isfinite(value)) return false;
  int exponent = 0;
  const double bits = std::frexp(value, &exponent) * 4096;
  return bits != std::round(bits);
}

bool CloseTo(double a, double b, double tolerance) {
  return a == b || std::fabs(a - b) <= tolerance * std::max(std::fabs(a), std::fabs(b));
}

bool SameValue(const Value& a, const Value& b) {
  if (a.index() == b.index()) {
    const auto* x = std::get_if<double>(&a);
    return x == nullptr ? a == b : CloseTo(*x, std::get<double>(b), 1e-6);
  }
  const auto x = AsNumber(a);
  const auto y = AsNumber(b);
  return x.has_value() && y.has_value() && CloseTo(*x, *y, 1e-6);
}

}  // namespace ag
