// Equations with an operator that a caller added (ExtraOperator). The rule language and the
// verifier know only the operators of the table, so these equations cannot be rules; they are
// checked here. Pure functions.
#pragma once

#include "lab/generate/terms.h"

namespace ag::generate {

// Returns true when the term contains an operator that is not in the table.
bool HasExtra(const TermTable& table, TermId id);

// Returns true when both terms have equal values on fresh leaves: 200 samples in each shape
// assignment, in exact arithmetic. REQUIRES: terms of one type in a world of the prime field.
bool HoldsAgain(const TermTable& table, TermId left, TermId right, uint64_t seed);

}  // namespace ag::generate
