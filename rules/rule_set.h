// Rules: verified equations between patterns, read from text (docs/rules.md has the language), e.g.
//   relu-idempotent    [exact]:    relu(relu(x)) => relu(x)
//   matmul-reassociate [rounding]: matmul(matmul(x, v), w) => matmul(x, matmul(v, w)) if const(v),
//   const(w)
// A RuleSet is immutable and thread-safe to read.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace ag {

// exact: equal in real arithmetic and in floating point. rounding: equal in real arithmetic.
// finite: equal unless Inf or NaN comes in; off under Policy::nonfinite_strict.
enum class RuleClass : uint8_t { kExact = 0, kRounding = 1, kFinite = 2 };
std::string_view RuleClassName(RuleClass rule_class);

// A place in a rules file, for messages that point at it.
struct RulePlace {
  int line = 0;  // From 1, as is the column.
  int column = 0;
  std::string text;  // The whole line.
};

// One parsed rule. Its pattern form is private to rules/.
struct RulePattern;
struct Rule {
  std::string name;  // Kebab-case, permanent.
  RuleClass rule_class = RuleClass::kExact;
  std::string text;  // Canonical one-line text; its digest names the verdict of the verifier.
  std::string file;  // Where it stands, for messages.
  int line = 0;
  RulePlace target;       // Where the right side begins.
  bool clean_up = false;  // From clean-up files: applied to the input too, not searched.
  std::shared_ptr<const RulePattern> pattern;
};

// kInvalidArgument "file:line:column: what", the line, and a caret under the column.
Status ErrorAt(std::string_view file, const RulePlace& place, std::string_view what);

class RuleSet {
 public:
  // The rules shipped with this build: rules/*.rules, compiled in. Loaded once; a bad rule there is
  // our own bug and stops the process.
  static const RuleSet& Shipped();

  // Reads one file's text. kInvalidArgument "file:line:column: what" with the line and a caret:
  // syntax, unknown operator or attribute, unbound variable, duplicate name. Nothing of a bad file
  // is kept.
  static StatusOr<RuleSet> Parse(std::string_view text, std::string_view file);

  // Both sets; kInvalidArgument when a name stands in both.
  static StatusOr<RuleSet> Join(const RuleSet& a, const RuleSet& b);

  const std::vector<Rule>& rules() const { return rules_; }
  const Rule* Find(std::string_view name) const;
  // Without the named rules and, if `strict`, without those of class finite.
  RuleSet Without(const std::vector<std::string>& names, bool strict) const;
  Digest digest() const;  // Over the texts; part of the model-level cache key.

 private:
  std::vector<Rule> rules_;
};

}  // namespace ag
