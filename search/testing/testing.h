// Rules for this room's tests. Constants.
#pragma once

#include <string_view>

namespace ag {

inline constexpr std::string_view kReassociate =
    "matmul-reassociate [rounding]: "
    "matmul(matmul(x, v), w) => matmul(x, matmul(v, w)) if const(v), const(w)\n";

}  // namespace ag
