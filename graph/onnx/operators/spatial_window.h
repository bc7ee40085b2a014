// Convolution in double precision over any number of spatial axes, for the kernels that quantize
// around it. Pure functions.
#pragma once

#include <vector>

#include "graph/onnx/operators/operator_call.h"

namespace ag::onnx_operators {

// Values with their shape, row-major.
struct Convolved {
  Shape shape;
  std::vector<double> values;
};
struct Operand {
  const std::vector<double>& values;
  const Shape& shape;
};

// Returns the convolution of x [N,C,...] with w [M,C/group,...], with the window of the call's
// attributes. `bias` has one value for each of M, or none. kInvalidArgument: sizes do not fit.
StatusOr<Convolved> Convolve(OperatorCall& call, const Operand& x, const Operand& w,
                             const std::vector<double>& bias);

}  // namespace ag::onnx_operators
