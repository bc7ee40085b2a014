// What held of the leaves and attributes where an equation was found: the conditions that a rule
// made of it may need.
#pragma once

#include <string>
#include <vector>

#include "rules/generate/fit.h"
#include "rules/generate/phrase.h"
#include "rules/generate/terms.h"

namespace ag::generate {

// An operator whose attributes go together under a name.
struct Labelled {
  std::string label;
  int call;
};

// Two names that the target joins along an axis: they need not be alike along that one.
struct JoinedNames {
  std::string first, second;
  int64_t axis;
};

// Strict ones first. Variables that they mention count as referred to.
std::vector<Constraint> ConstraintsOf(const TermTable& table, const Wording& wording,
                                      const std::vector<Labelled>& labels,
                                      const std::vector<JoinedNames>& joined, Fitter* fit);

}  // namespace ag::generate
