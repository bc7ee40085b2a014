// Row-major layouts: strides, broadcasts, and copies of elements by their size. Pure functions.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "graph/onnx/operators/operator_call.h"

namespace ag::onnx_operators {

// A tensor seen along one axis: outer x size x inner elements.
struct AxisView {
  int64_t outer = 1, size = 1, inner = 1;

  // The position of element `i` of the line that begins at outer `o`, inner `n`.
  int64_t At(int64_t o, int64_t i, int64_t n) const { return (o * size + i) * inner + n; }
};
// REQUIRES: axis is an axis of `shape`.
AxisView ViewAlong(const Shape& shape, int64_t axis);

// The number of elements of the axes [first, last).
int64_t ElementsOf(const Shape& shape, int64_t first, int64_t last);

// Steps between neighbours of each axis, in elements.
Ints StridesOf(const Shape& shape);

// Returns the broadcast of the operands [first, size()). kInvalidArgument: they have none.
StatusOr<Shape> BroadcastOf(const OperatorCall& call, size_t first = 0);

// Returns the elements of operand `i` broadcast to `shape`. kInvalidArgument: it does not.
StatusOr<std::vector<double>> SpreadOf(const OperatorCall& call, size_t i, const Shape& shape);

// Returns the strides that read a tensor of shape `from` in the order of `to`, to which it
// broadcasts: 0 along repeated axes. REQUIRES: it broadcasts.
Ints BroadcastStrides(const Shape& from, const Shape& to);

// Calls visit(offsets) for each position of `shape` in row-major order, with the sums of positions
// times strides. REQUIRES: each list has a stride for each axis.
template <size_t N, class Visit>
void Walk(const Shape& shape, const std::array<Ints, N>& strides, Visit&& visit) {
  const int64_t count = NumElements(shape);
  std::array<int64_t, N> offsets{};
  Ints at(shape.size());
  for (int64_t done = 0; done < count; ++done) {
    visit(offsets);
    for (size_t axis = shape.size(); axis-- > 0;) {
      const bool carries = ++at[axis] == shape[axis];
      for (size_t i = 0; i < N; ++i) {
        offsets[i] += carries ? -strides[i][axis] * (shape[axis] - 1) : strides[i][axis];
      }
      if (!carries) break;
      at[axis] = 0;
    }
  }
}

// Copies elements of `width` bytes: to `to` in the order of `shape`, from `from` by `strides`.
void CopyStrided(const Shape& shape, const char* from, const Ints& strides, int64_t width,
                 char* to);

// Fills `count` elements of `width` bytes with the one at `element`.
void FillWith(const char* element, int64_t width, int64_t count, char* to);

// Returns the index, counted from the end when negative. kOutOfRange: outside [-size, size).
StatusOr<int64_t> ResolveIndex(int64_t index, int64_t size);

}  // namespace ag::onnx_operators
