// Values with a shape, and products of matrices, in double precision. Pure functions.
#pragma once

#include <vector>

#include "graph/onnx/operators/operator_call.h"

namespace ag::onnx_operators {

// Row-major.
struct Matrix {
  Shape shape;
  std::vector<double> values;
};

// Returns the product, with leading axes broadcast and vectors as numpy takes them.
// kInvalidArgument: sizes do not fit. kResourceExhausted: result 0 of the call, in `dtype`, would
// pass the limit.
StatusOr<Matrix> MultiplyMatrices(OperatorCall& call, DType dtype, const Matrix& a,
                                  const Matrix& b);

// Returns the matrix with its axes in the order of `perm`. REQUIRES: a permutation.
Matrix Permuted(const Matrix& matrix, const Ints& perm);

// Returns [N,...,C] as [N,C,...], and back. REQUIRES: rank 2 or more.
Matrix ChannelsFirst(const Matrix& matrix);
Matrix ChannelsLast(const Matrix& matrix);

}  // namespace ag::onnx_operators
