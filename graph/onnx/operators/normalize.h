// Normalization of rows in double precision, for ONNX's operators and those of com.microsoft. Pure
// functions.
#pragma once

#include <vector>

#include "graph/onnx/operators/operator_call.h"

namespace ag::onnx_operators {

// By the mean and the deviation of a row, or by the root of its mean square only.
enum class RowNorm : uint8_t { kDeviation, kMeanSquare };

// One value for each row.
struct RowMoments {
  std::vector<double> means, inverse_deviations;
};

// Normalizes rows of `size` elements each. REQUIRES: size divides the number of values, or there
// are none.
RowMoments NormalizeRows(std::vector<double>& values, int64_t size, double epsilon, RowNorm norm);

// Makes result `i` of moments, when the node wants it. Rows without elements have moments of 0.
Status GiveMoments(OperatorCall& call, size_t i, const TensorType& type,
                   std::vector<double> moments);

}  // namespace ag::onnx_operators
