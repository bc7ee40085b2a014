#include "rules/language/expression_parser.h"

#include <limits>
#include <string>

#include "rules/language/guards.h"

namespace ag {
namespace {

StatusOr<Expression> ParseSum(Cursor& cursor);

Expression Operator(std::string_view name, size_t offset, std::vector<Expression> arguments) {
  Expression e;
  e.kind = Expression::Kind::kOperator;
  e.name = name;
  e.offset = offset;
  e.arguments = std::move(arguments);
  return e;
}

// Parses the elements of a list or the arguments of a call, up to `close`.
StatusOr<std::vector<Expression>> ParseArguments(Cursor& cursor, std::string_view close) {
  std::vector<Expression> arguments;
  if (cursor.Accept(close)) return arguments;
  do {
    AG_LET(Expression argument, ParseExpression(cursor));
    argument.spread = cursor.Accept("...");
    arguments.push_back(std::move(argument));
  } while (cursor.Accept(","));
  AG_TRY(cursor.Expect(close));
  return arguments;
}

// Checks the names of operators: a misspelt one would make a guard that never holds.
Status CheckOperators(Cursor& cursor, const std::vector<Expression>& names) {
  for (const Expression& name : names) {
    if (name.kind != Expression::Kind::kString || OpKindFromText(name.name).ok()) continue;
    return cursor.ErrorAt(name.offset, fmt::format("unknown operator '{}'", name.name));
  }
  return OkStatus();
}

Status ParseCall(Cursor& cursor, Expression* e) {
  e->kind = Expression::Kind::kCall;
  e->function = FindFunction(e->name);
  if (e->function == nullptr) {
    return cursor.ErrorAt(e->offset, fmt::format("unknown guard or function '{}'", e->name));
  }
  AG_LET(e->arguments, ParseArguments(cursor, ")"));
  if (e->name == "is") AG_TRY(CheckOperators(cursor, e->arguments));
  bool has_spread = false;
  for (const Expression& argument : e->arguments) has_spread |= argument.spread;
  const int n = static_cast<int>(e->arguments.size());
  const RuleFunction& f = *e->function;
  if (!has_spread && (n < f.arity_min || (f.arity_max >= 0 && n > f.arity_max))) {
    return cursor.ErrorAt(
        e->offset, fmt::format("{} takes other arguments than {}: {}", f.name, n, f.signature));
  }
  return OkStatus();
}

StatusOr<Expression> ParseNameOrCall(Cursor& cursor, std::string name, size_t offset) {
  Expression e;
  e.offset = offset;
  e.name = std::move(name);
  if (e.name == "inf") {
    e.kind = Expression::Kind::kFloat;
    e.number = std::numeric_limits<double>::infinity();
    return e;
  }
  if (cursor.Accept("(")) {
    AG_TRY(ParseCall(cursor, &e));
    return e;
  }
  e.kind = Expression::Kind::kVariable;
  if (cursor.Accept("[")) {
    const std::optional<std::string> index = cursor.Identifier();
    if (!index.has_value()) return cursor.Error("expected an index letter");
    e.indexed = true;
    e.index_name = *index;
    AG_TRY(cursor.Expect("]"));
  }
  return e;
}

StatusOr<Expression> ParseOneAtom(Cursor& cursor);

StatusOr<Expression> ParseAtom(Cursor& cursor) {
  AG_TRY(cursor.Deeper());
  StatusOr<Expression> atom = ParseOneAtom(cursor);
  cursor.Shallower();
  return atom;
}

StatusOr<Expression> ParseOneAtom(Cursor& cursor) {
  Expression e;
  e.offset = cursor.offset();
  if (const auto number = cursor.AcceptNumber()) {
    e.kind = number->is_integer ? Expression::Kind::kInt : Expression::Kind::kFloat;
    e.integer = number->integer;
    e.number = number->value;
    return e;
  }
  if (auto text = cursor.QuotedString()) {
    e.kind = Expression::Kind::kString;
    e.name = *text;
    return e;
  }
  if (cursor.Accept("[")) {
    e.kind = Expression::Kind::kList;
    AG_LET(e.arguments, ParseArguments(cursor, "]"));
    return e;
  }
  if (cursor.Accept("(")) {
    AG_LET(Expression inner, ParseExpression(cursor));
    AG_TRY(cursor.Expect(")"));
    return inner;
  }
  if (cursor.Accept("-")) {
    AG_LET(Expression inner, ParseAtom(cursor));
    return Operator("neg", e.offset, {std::move(inner)});
  }
  if (auto name = cursor.Identifier()) return ParseNameOrCall(cursor, *name, e.offset);
  return cursor.Error("expected a number, a list, a name or a call");
}

template <class Parse>
StatusOr<Expression> ParseChain(Cursor& cursor, std::initializer_list<std::string_view> operators,
                                Parse parse) {
  AG_LET(Expression left, parse(cursor));
  for (int length = 0;; ++length) {
    const size_t offset = cursor.offset();
    if (length > 100) return cursor.Error("more than 100 operands");
    std::string_view found;
    for (const std::string_view op : operators) {
      if (found.empty() && cursor.Accept(op)) found = op;
    }
    if (found.empty()) return left;
    AG_LET(Expression right, parse(cursor));
    left = Operator(found, offset, {std::move(left), std::move(right)});
  }
}

StatusOr<Expression> ParseProduct(Cursor& cursor) {
  return ParseChain(cursor, {"*", "/"}, ParseAtom);
}
StatusOr<Expression> ParseSum(Cursor& cursor) {
  return ParseChain(cursor, {"+", "-"}, ParseProduct);
}

}  // namespace

StatusOr<Expression> ParseExpression(Cursor& cursor) {
  AG_LET(Expression left, ParseSum(cursor));
  for (const std::string_view op : {"==", "!=", "<=", ">=", "<", ">"}) {
    const size_t offset = cursor.offset();
    if (!cursor.Accept(op)) continue;
    AG_LET(Expression right, ParseSum(cursor));
    return Operator(op, offset, {std::move(left), std::move(right)});
  }
  return left;
}

}  // namespace ag
