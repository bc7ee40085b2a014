// An equation of the enumeration, said in the rule language. The same equation can be said more or
// less generally: over any number of operands or two, attributes as variables or as the values they
// had, axes counted from either end, an operator or its class; and often in several ways. A wording
// and a set of constraints together give lines of text; which of them hold is for the caller to
// find out.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "rules/generate/terms.h"

namespace ag::generate {

struct Wording {
  enum class Axes : uint8_t { kVariable, kFromEnd, kLiteral };
  bool whole = false;   // A variable for what both sides read as a whole.
  bool spread = false;  // x[i]... for the operands of a concat that differ in their leaves alone.
  Axes axes = Axes::kVariable;
  bool lists = true;  // Lists (sizes, shape, ...) as variables, else from sizes of the leaves.
  bool unary_class = false;   // unary.f instead of the one unary operator that occurs.
  bool binary_class = false;  // binary.f instead of the one binary operator that occurs.
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
  std::string source, target;           // Without constraints.
  std::vector<Constraint> constraints;  // All that hold where the equation was found, strict first.
  bool zeros = false;  // The target has a difference of equals, which Inf and NaN are not.

  std::string equation() const { return source + " => " + target; }
  // "source => target if guard, guard" with these of its constraints.
  std::string With(const std::vector<Constraint>& kept) const;
};

// Every way to say it in this wording, the likelier first; at most a few. Empty: the target needs
// something that the source does not bind, or it cannot be said so.
std::vector<Phrase> Say(const TermTable& table, const std::vector<TermId>& source,
                        const std::vector<TermId>& target, const Wording& wording);

// The equation as it stands in the table, for people; an operator that is not in the operator table
// has its own name here.
std::string SayPlainly(const TermTable& table, TermId source, TermId target);

}  // namespace ag::generate
