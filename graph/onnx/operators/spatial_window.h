// Windows that move over the spatial axes of [N,C,...]: their sizes and places, and convolution
// with them in double precision. Pure functions.
#pragma once

#include <algorithm>
#include <vector>

#include "graph/onnx/operators/operator_call.h"

namespace ag::onnx_operators {

// Every list has one value for each spatial axis.
struct SpatialWindow {
  Ints in, kernel, strides, dilations, begin, end, out;

  size_t axes() const { return kernel.size(); }
  int64_t Span(size_t i) const { return (kernel[i] - 1) * dilations[i] + 1; }
};

// kInvalidArgument: the list has another number of values, or one is not in [low, 2^30].
Status CheckList(std::string_view name, const Ints& values, size_t size, int64_t low);

// Reads strides, dilations and pads for a window over the sizes `in`.
StatusOr<SpatialWindow> ReadSteps(OperatorCall& call, Ints in, Ints kernel);

// Reads the attributes of a window over operand 0; `kernel` is that of the weights, empty when an
// attribute says it.
StatusOr<SpatialWindow> ReadWindow(OperatorCall& call, const Ints& kernel);

// Splits `total` padding of an axis; the odd one goes to the end, or to the begin.
void SplitPadding(int64_t total, bool odd_at_end, int64_t* begin, int64_t* end);

// Sets the result's sizes, and the padding that auto_pad means.
Status PlaceWindow(OperatorCall& call, SpatialWindow& window);

// Calls visit(position, offset of the position) for all positions of `sizes`, the last axis
// fastest.
template <class Visit>
void ForPositions(const Ints& sizes, Visit&& visit) {
  Ints at(sizes.size(), 0);
  const int64_t count = NumElements(sizes);
  for (int64_t offset = 0; offset < count; ++offset) {
    visit(at, offset);
    for (size_t i = sizes.size(); i-- > 0;) {
      if (++at[i] < sizes[i]) break;
      at[i] = 0;
    }
  }
}

// Returns, for each place of the window and each of its elements, the offset of the element among
// the spatial positions of the input; -1: it is in the padding. `places` are the sizes over which
// the window moves, `sizes` those that it looks at.
StatusOr<std::vector<int64_t>> LinksOf(const SpatialWindow& window, const Ints& places,
                                       const Ints& sizes);

Shape WithSpatial(int64_t batch, int64_t channels, const Ints& spatial);

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
