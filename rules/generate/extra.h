// Equations with an operator that a caller added (ExtraOperator). The rule language and the
// verifier know the operators of the table alone, so these cannot be written as rules; they are
// checked here.
#pragma once

#include "rules/generate/terms.h"

namespace ag::generate {

// Whether an operator that is not in the table stands below.
bool HasExtra(const TermTable& table, TermId id);

// Whether both compute the same on fresh values: 200 draws in each shape assignment, in exact
// arithmetic. REQUIRES: of a world of the prime field, with one type.
bool HoldsAgain(const TermTable& table, TermId left, TermId right, uint64_t seed);

}  // namespace ag::generate
