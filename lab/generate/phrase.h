// An equation of the enumeration in the rule language. The wording can be more or less general: any
// number of operands or two, attributes as variables or as the values found, axes counted from
// either end, an operator or its class; often there are several ways. A wording and a set of
// constraints give texts; the caller finds out which ones hold. Pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lab/generate/terms.h"

namespace ag::generate {

struct Wording {
  enum class Axes : uint8_t { kVariable, kFromEnd, kLiteral };
  bool whole = false;   // A variable for a term that both sides read as a whole.
  bool spread = false;  // x[i]... for operands of a concat that differ only in their leaves.
  Axes axes = Axes::kVariable;
  bool lists = true;  // Lists (sizes, shape, ...) as variables, else made from sizes of the leaves.
  bool unary_class = false;   // unary.f in place of the only unary operator.
  bool binary_class = false;  // binary.f in place of the only binary operator.
};
// Returns all wordings, from general to special.
std::span<const Wording> Wordings();

// A side condition: a guard, or an attribute of a labelled operator.
struct Constraint {
  std::string text;
  std::string label;  // The operator whose attribute `text` is; "": a guard.
  bool operator==(const Constraint&) const = default;
};

struct Phrase {
  std::string source, target;  // Without constraints.
  // All that hold where the equation was found, strict ones first.
  std::vector<Constraint> constraints;
  bool zeros = false;  // The target has a difference of equals, which is NaN for Inf and NaN.

  std::string equation() const { return source + " => " + target; }
  // Returns "source => target if guard, guard" with these of its constraints.
  std::string With(const std::vector<Constraint>& kept) const;
};

// Returns the ways of this wording, the likely ones first; at most a few. Empty: the target needs a
// value that the source does not bind, or the wording cannot express it.
std::vector<Phrase> Say(const TermTable& table, const std::vector<TermId>& source,
                        const std::vector<TermId>& target, const Wording& wording);

// Returns the equation as in the table, for people. An operator outside the operator table has its
// own name here.
std::string SayPlainly(const TermTable& table, TermId source, TermId target);

}  // namespace ag::generate
