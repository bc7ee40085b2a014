#include "rules/language/parser.h"

#include <map>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "rules/language/expression_parser.h"
#include "rules/language/resolver.h"

namespace ag {
namespace {

bool IsReserved(std::string_view word) { return word == "each" || word == "if"; }

class TermParser {
 public:
  TermParser(const SourceText& source, Cursor& cursor) : source_(source), cursor_(cursor) {}

  StatusOr<Term> Parse() {
    AG_TRY(cursor_.Deeper());
    StatusOr<Term> term = ParseTerm();
    cursor_.Shallower();
    return term;
  }

 private:
  // Parses: term := number | {expression} | name | [name:] operator[.label](operands;
  // attributes)[output]
  StatusOr<Term> ParseTerm() {
    Term term;
    term.offset = cursor_.offset();
    if (cursor_.Accept("{")) {
      AG_TRY(ParseScalar(&term));
      return term;
    }
    if (const auto number = cursor_.AcceptNumber()) {
      term.kind = Term::Kind::kScalar;
      term.scalar.kind = Expression::Kind::kFloat;
      term.scalar.number = number->value;
      term.scalar.offset = term.offset;
      return term;
    }
    std::optional<std::string> word = cursor_.Identifier();
    if (!word.has_value() || IsReserved(*word)) {
      return source_.Error(term.offset, "expected a variable, an operator or a number");
    }
    if (cursor_.Follows("(") || (cursor_.Follows(".") && !cursor_.Follows("..."))) {
      AG_TRY(ParseOperator(*word, term.offset, &term));
      return term;
    }
    term.name = *word;
    AG_TRY(ParseIndex(&term));
    if (!cursor_.Accept(":")) return term;
    const size_t offset = cursor_.offset();
    word = cursor_.Identifier();
    if (!word.has_value()) return source_.Error(offset, "expected an operator after ':'");
    AG_TRY(ParseOperator(*word, offset, &term));
    return term;
  }

  Status ParseScalar(Term* term) {
    term->kind = Term::Kind::kScalar;
    AG_LET(term->scalar, ParseExpression(cursor_));
    return cursor_.Expect("}");
  }

  // Parses the [i] of x[i].
  Status ParseIndex(Term* term) {
    if (!cursor_.Accept("[")) return OkStatus();
    const std::optional<std::string> index = cursor_.Identifier();
    if (!index.has_value()) return cursor_.Error("expected an index letter");
    term->indexed = true;
    term->index_name = *index;
    return cursor_.Expect("]");
  }

  Status ParseOperator(const std::string& word, size_t offset, Term* term) {
    term->kind = Term::Kind::kOperator;
    AG_TRY(ResolveOperator(source_, word, offset, term));
    if (cursor_.Accept(".")) {
      const std::optional<std::string> label = cursor_.Identifier();
      if (!label.has_value()) return cursor_.Error("expected a label after '.'");
      term->label = *label;
    }
    AG_TRY(cursor_.Expect("("));
    AG_TRY(ParseOperands(term));
    if (cursor_.Accept(";")) AG_TRY(ParseAttributes(term));
    AG_TRY(cursor_.Expect(")"));
    return ParseOutput(term);
  }

  Status ParseOperands(Term* term) {
    if (cursor_.Follows(";") || cursor_.Follows(")")) return OkStatus();
    do {
      AG_LET(Term operand, Parse());
      operand.spread = cursor_.Accept("...");
      term->operands.push_back(std::move(operand));
    } while (cursor_.Accept(","));
    return OkStatus();
  }

  Status ParseAttributes(Term* term) {
    do {
      AttributeTerm attribute{.offset = cursor_.offset()};
      attribute.name = cursor_.Identifier().value_or("");
      if (attribute.name.empty()) return cursor_.Error("expected an attribute name");
      AG_TRY(cursor_.Expect("="));
      AG_LET(attribute.value, ParseExpression(cursor_));
      term->attributes.push_back(std::move(attribute));
    } while (cursor_.Accept(","));
    return OkStatus();
  }

  // Parses the [i] or [0] after the closing parenthesis.
  Status ParseOutput(Term* term) {
    if (!cursor_.Accept("[")) return OkStatus();
    const size_t offset = cursor_.offset();
    if (const auto number = cursor_.AcceptNumber()) {
      if (!number->is_integer || number->integer > 1000) {
        return source_.Error(offset, "expected the number of an output");
      }
      term->output_choice = OutputChoice::kLiteral;
      term->output = static_cast<int>(number->integer);
    } else if (const auto index = cursor_.Identifier()) {
      term->output_choice = OutputChoice::kEach;
      term->output_index = *index;
    } else {
      return cursor_.Error("expected an output number or an index letter");
    }
    return cursor_.Expect("]");
  }

  const SourceText& source_;
  Cursor& cursor_;
};

StatusOr<std::vector<Term>> ParseTerms(const SourceText& source, Cursor& cursor) {
  std::vector<Term> terms;
  do {
    AG_LET(Term term, TermParser(source, cursor).Parse());
    terms.push_back(std::move(term));
  } while (cursor.Accept(","));
  return terms;
}

// Parses: guard := expression | name = expression
StatusOr<Guard> ParseGuard(Cursor& cursor, std::string* binds) {
  Guard guard;
  const Cursor::Mark mark = cursor.Save();
  const std::optional<std::string> name = cursor.Identifier();
  if (name.has_value() && !cursor.Follows("==") && cursor.Accept("=")) {
    *binds = *name;
  } else {
    cursor.Restore(mark);
  }
  AG_LET(guard.value, ParseExpression(cursor));
  return guard;
}

Status ParseHead(Cursor& cursor, Rule* rule) {
  const std::optional<std::string> name = cursor.KebabName();
  if (!name.has_value()) return cursor.Error("expected a rule name in kebab-case");
  rule->name = *name;
  AG_TRY(cursor.Expect("["));
  const size_t offset = cursor.offset();
  const std::string word = cursor.Identifier().value_or("");
  bool known = false;
  for (const auto c : {RuleClass::kExact, RuleClass::kRounding, RuleClass::kFinite}) {
    if (word != RuleClassName(c)) continue;
    rule->rule_class = c;
    known = true;
  }
  if (!known) return cursor.ErrorAt(offset, "expected exact, rounding or finite");
  if (cursor.Accept(",")) {
    AG_TRY(cursor.Expect("clean-up"));
    rule->clean_up = true;
  }
  AG_TRY(cursor.Expect("]"));
  return cursor.Expect(":");
}

// Returns the text with one blank for each comment, continuation or run of blanks. Its digest names
// the rule.
std::string CanonicalText(std::string_view blanked) {
  return absl::StrJoin(absl::StrSplit(std::string(blanked), ' ', absl::SkipEmpty()), " ");
}

StatusOr<Rule> ParseRule(const SourceText& source, size_t begin, size_t end) {
  Cursor cursor(source, begin, end);
  Rule rule;
  rule.file = source.file();
  rule.line = source.LineOf(cursor.offset());
  rule.text = CanonicalText(source.blanked().substr(begin, end - begin));
  AG_TRY(ParseHead(cursor, &rule));
  UnresolvedRule parsed;
  const Cursor::Mark mark = cursor.Save();
  if (cursor.Identifier() == "each") {
    parsed.each = cursor.Identifier().value_or("");
    if (parsed.each.empty()) return cursor.Error("expected an index letter");
    AG_TRY(cursor.Expect(":"));
  } else {
    cursor.Restore(mark);
  }
  AG_LET(parsed.pattern.sources, ParseTerms(source, cursor));
  AG_TRY(cursor.Expect("=>"));
  rule.target = source.PlaceOf(cursor.offset());
  AG_LET(parsed.pattern.targets, ParseTerms(source, cursor));
  if (cursor.Accept("if ")) {
    do {
      parsed.guard_binds.emplace_back();
      AG_LET(Guard guard, ParseGuard(cursor, &parsed.guard_binds.back()));
      parsed.pattern.guards.push_back(std::move(guard));
    } while (cursor.Accept(","));
  }
  if (!cursor.AtEnd()) return cursor.Error("expected ',' or the end of the rule");
  parsed.pattern.clean_up = rule.clean_up;
  AG_LET(rule.pattern, Resolve(source, std::move(parsed)));
  return rule;
}

}  // namespace

StatusOr<std::vector<Rule>> ParseRules(std::string_view text, std::string_view file) {
  const SourceText source(text, file);
  const std::string_view blanked = source.blanked();
  std::vector<Rule> rules;
  std::map<std::string, int> line_by_name;
  for (size_t begin = 0; begin < blanked.size();) {
    const size_t end = std::min(blanked.find('\n', begin), blanked.size());
    Cursor cursor(source, begin, end);
    if (!cursor.AtEnd()) {
      const size_t offset = cursor.offset();
      AG_LET(Rule rule, ParseRule(source, begin, end));
      const auto [earlier, inserted] = line_by_name.emplace(rule.name, rule.line);
      if (!inserted) {
        return source.Error(
            offset, fmt::format("rule '{}' stands in line {} already", rule.name, earlier->second));
      }
      rules.push_back(std::move(rule));
    }
    begin = end + 1;
  }
  return rules;
}

}  // namespace ag
