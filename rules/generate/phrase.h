// An equation of the enumeration, said in the rule language. The same equation can be said more or
// less generally: attributes as variables or as the values they had, axes counted from either end,
// an operator or its class. A wording and a set of constraints together give one line of text;
// which of them hold is for the caller to find out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rules/generate/terms.h"

namespace ag::generate {

struct Wording {
  enum class Axes : uint8_t { kVariable, kFromEnd, kLiteral };
  Axes axes = Axes::kVariable;
  bool lists = true;  // Lists (sizes, perm, ...) as variables, else from sizes of the leaves.
  bool unary_class = false;  // unary.f instead of the one unary operator that occurs.
};
// From general to special.
std::span<const Wording> Wordings();

// A side condition: a guard, or an attribute of a labelled operator.
struct Constraint {
  std::string text;
  std::string label;  // Of the operator that `text` is an attribute of; "": a guard.
  bool operator==(const Constraint&) const = default;
};

struct Phrase {
  std::string equation;                 // "source => target", with the attribute constraints.
  std::vector<Constraint> constraints;  // All that hold where the equation was found, strict first.
  bool zeros = false;  // The target has a difference of equals, which Inf and NaN are not.
};

// nullopt: the target needs something that the source does not bind, or cannot be said.
// With `kept`, the equation carries these constraints' attributes.
std::optional<Phrase> Say(const TermTable& table, const std::vector<TermId>& source,
                          const std::vector<TermId>& target, const Wording& wording,
                          const std::vector<Constraint>& kept);

// " if guard, guard" of the constraints that are guards, or "".
std::string GuardsOf(const std::vector<Constraint>& kept);

}  // namespace ag::generate
