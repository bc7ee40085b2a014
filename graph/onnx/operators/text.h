// Casts from and to strings. Pure functions.
#pragma once

#include "graph/onnx/operators/operator_call.h"

namespace ag::onnx_operators {

// Makes result 0 of operand 0 as elements of `to`. Numbers are written with as few digits as give
// them back ("0.1", "1e-05", "INF", "NaN"). kInvalidArgument: a string is no number.
// REQUIRES: either operand 0 or `to` is of strings.
Status CastStrings(OperatorCall& call, DType to);

}  // namespace ag::onnx_operators
