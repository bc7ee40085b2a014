// The substitutions in TASO's code, which it applies with every file: 12 (a convolution and the
// operator after it), 2 (merge after enlarging) and 4 (merge groups). Pure functions.
#pragma once

#include <vector>

#include "lab/taso/format.h"

namespace ag {

// Returns these substitutions as rules.
std::vector<TasoRule> TasoBuiltins();

}  // namespace ag
