// What inner loops compute of each value while it is in a register.
#pragma once

#include <limits>

namespace ag::cpu {

// The bounds that a relu or clip puts on values. NaN stays NaN.
struct ValueBounds {
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
  bool HasZero() const { return low <= 0 && high >= 0; }
};

struct RegisterOps {
  ValueBounds bounds;
  bool is_hard_swish = false;  // The values within the bounds are given to hard swish.
};

}  // namespace ag::cpu
