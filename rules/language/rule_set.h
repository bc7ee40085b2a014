// Rules: verified equations between patterns, read from text (docs/rules.md), for example
//   relu-idempotent    [exact]:    relu(relu(x)) => relu(x)
//   matmul-reassociate [rounding]: matmul(matmul(x, v), w) => matmul(x, matmul(v, w)) if const(v),
//                                  const(w)
// A RuleSet is immutable; safe to share between threads.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace ag {

// exact: equal in real arithmetic and in floating point. rounding: equal in real arithmetic.
// finite: equal without Inf and NaN; off under Policy::nonfinite_strict.
enum class RuleClass : uint8_t { kExact = 0, kRounding = 1, kFinite = 2 };
std::string_view RuleClassName(RuleClass rule_class);

// A place in a rules file, for error messages.
struct RulePlace {
  int line = 0;  // From 1, as the column.
  int column = 0;
  std::string text;  // The whole line.
};

// One parsed rule. Its pattern is private to rules/.
struct RulePattern;
struct Rule {
  std::string name;  // Kebab-case; never changes.
  RuleClass rule_class = RuleClass::kExact;
  // Canonical text on one line; its digest names the verifier's verdict.
  std::string text;
  std::string file;  // Its file, for messages.
  int line = 0;
  RulePlace target;       // The begin of the right side.
  bool clean_up = false;  // From a clean-up file: applied in CleanUp, not searched.
  std::shared_ptr<const RulePattern> pattern;
};

// Returns kInvalidArgument "file:line:column: what", the line, and a caret under the column.
Status ErrorAt(std::string_view file, const RulePlace& place, std::string_view what);

class RuleSet {
 public:
  // Returns the rules of one file's text. kInvalidArgument "file:line:column: what" with the line
  // and a caret: syntax, unknown operator or attribute, unbound variable, or duplicate name.
  static StatusOr<RuleSet> Parse(std::string_view text, std::string_view file);

  // Returns both sets together. kInvalidArgument: a name is in both.
  static StatusOr<RuleSet> Join(const RuleSet& a, const RuleSet& b);

  const std::vector<Rule>& rules() const { return rules_; }
  // Returns the rule; null: there is none.
  const Rule* Find(std::string_view name) const;
  // kInvalidArgument "no rule is called x; did you mean 'y'?": the set lacks one of the names.
  Status CheckNames(const std::vector<std::string>& names) const;
  // Returns the set without the named rules and, if `strict`, without rules of class finite.
  RuleSet Without(const std::vector<std::string>& names, bool strict) const;
  Digest digest() const;  // Over the texts; part of the model-level cache key.

 private:
  std::vector<Rule> rules_;
};

}  // namespace ag
