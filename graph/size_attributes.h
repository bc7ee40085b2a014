// Attributes that hold sizes, or places along axes. They follow from the sizes of inputs where a
// model leaves these open. Pure functions.
#pragma once

#include <string_view>

#include "graph/op_kind.h"

namespace ag {

bool HoldsSizes(OpKind op, std::string_view attribute);

}  // namespace ag
