// Numbers of quantized tensors in double precision, for ONNX's operators and those of
// com.microsoft. Pure functions.
#pragma once

#include <span>
#include <vector>

#include "graph/onnx/operators/operator_call.h"

namespace ag::onnx_operators {

// The values of a scale or zero point for each element of a tensor: one for all, one for each place
// along an axis, or one for each block along it.
class PerElement {
 public:
  // Values of an absent operand are `otherwise`; block = 0: not in blocks. kInvalidArgument: the
  // operand does not fit the tensor.
  static StatusOr<PerElement> Of(const OperatorCall& call, size_t operand, const Shape& shape,
                                 int64_t axis, int64_t block, double otherwise);

  double at(size_t element) const;

 private:
  std::vector<double> values_;
  int64_t inner_ = 1, size_ = 1;
  int64_t block_ = 0, blocks_ = 1;  // 0: not in blocks.
};

// The least and the largest quantized number of a type. kUnimplemented: of other types.
struct QuantizedRange {
  double low = 0, high = 0;
};
StatusOr<QuantizedRange> RangeOf(DType dtype);

// Rounds half to even, shifts and saturates.
double Quantized(double value, double zero, const QuantizedRange& range);

// How DynamicQuantizeLinear maps values to u8. Their range always holds 0.
struct DynamicScale {
  float scale = 1, zero = 0;

  float Quantize(double value) const;
  double Back(double value) const { return (Quantize(value) - zero) * double{scale}; }
};
DynamicScale DynamicScaleOf(std::span<const double> values);

// Returns the operand's values without its zero point. The zero point of a matrix on the left goes
// with its rows, of one on the right with its columns (`axis`).
StatusOr<std::vector<double>> WithoutZero(const OperatorCall& call, size_t i, size_t zero_operand,
                                          int64_t axis);
int64_t RowsAxis(const OperatorCall& call, size_t i);  // The axis of a matrix on the left.

}  // namespace ag::onnx_operators
