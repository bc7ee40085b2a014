// Models for this room's tests, in ONNX's own text form. Constants.
#pragma once

#include <string_view>

namespace ag {

inline constexpr std::string_view kModel =
    "g (float[2,4] x) => (float[2,3] y) <float[4,3] w = {1,-2,3,4,5,-6,7,8,9,-1,2,3},"
    " float[3] b = {0.5, -0.5, 1}> { p = MatMul(x, w) q = Add(p, b) y = Relu(q) }";
inline constexpr std::string_view kOpenBatch =
    "g (float[N,4] x) => (float[N,4] y) { p = Relu(x) y = Softmax<axis = 1>(p) }";

}  // namespace ag
