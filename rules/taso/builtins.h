// The substitutions that TASO has in its code and applies whatever file it is given: 12 (a
// convolution and what follows it), 2 (merge after enlarging) and 4 (merge groups).
#pragma once

#include <vector>

#include "rules/taso/format.h"

namespace ag {

std::vector<TasoRule> TasoBuiltins();

}  // namespace ag
