// The facts about leaves and attributes that hold where an equation was found: conditions that its
// rule may need. Pure functions, except for the Fitter.
#pragma once

#include <string>
#include <vector>

#include "lab/generate/fit.h"
#include "lab/generate/phrase.h"
#include "lab/generate/terms.h"

namespace ag::generate {

// An operator whose attributes have a common name.
struct Labelled {
  std::string label;
  int call;
};

// Two names that the target joins along an axis, along which they may differ.
struct JoinedNames {
  std::string first, second;
  int64_t axis;
};

// Returns the constraints, strict ones first. Refers to the variables that they mention.
std::vector<Constraint> ConstraintsOf(const TermTable& table, const Wording& wording,
                                      const std::vector<Labelled>& labels,
                                      const std::vector<JoinedNames>& joined, Fitter* fit);

}  // namespace ag::generate
