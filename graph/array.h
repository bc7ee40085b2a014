// A dense row-major array of a scalar type (graph/reference/scalar.h), for the operands and results
// of reference kernels. Plain data and pure functions; a Walker belongs to one thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "graph/types.h"

namespace ag {

template <class T>
struct Array {
  Shape shape;
  std::vector<T> values;  // NumElements(shape) of them.

  explicit Array(Shape s = {0}) : shape(std::move(s)) {
    values.resize(static_cast<size_t>(NumElements(shape)));
  }
  Array(Shape s, std::vector<T> v) : shape(std::move(s)), values(std::move(v)) {}
};

// Returns the distance in elements between neighbours along each axis.
Shape StridesOf(std::span<const int64_t> shape);

// Returns the strides for reading an operand of `shape` at positions of the broadcast shape `as`;
// the stride is 0 along an axis that the operand repeats. REQUIRES: shape broadcasts to `as`.
Shape BroadcastStrides(std::span<const int64_t> shape, std::span<const int64_t> as);

// A walk over all positions of `shape` in row-major order that keeps one offset per operand. A step
// along an axis adds each operand's stride of that axis.
template <size_t N>
class Walker {
 public:
  Walker(Shape shape, std::array<Shape, N> strides)
      : shape_(std::move(shape)), strides_(std::move(strides)), at_(shape_.size(), 0) {}

  int64_t offset(size_t operand) const { return offsets_[operand]; }

  void Next() {
    for (size_t axis = shape_.size(); axis-- > 0;) {
      for (size_t i = 0; i < N; ++i) offsets_[i] += strides_[i][axis];
      if (++at_[axis] < shape_[axis]) return;
      for (size_t i = 0; i < N; ++i) offsets_[i] -= strides_[i][axis] * shape_[axis];
      at_[axis] = 0;
    }
  }

 private:
  Shape shape_;
  std::array<Shape, N> strides_;
  Shape at_;
  std::array<int64_t, N> offsets_{};
};

// The axes before, at and after one axis, each group multiplied together: element (o, i, n) has the
// offset (o * axis + i) * inner + n.
struct AxisView {
  int64_t outer = 1;
  int64_t axis = 1;
  int64_t inner = 1;
};
AxisView ViewAxis(std::span<const int64_t> shape, int64_t axis);

}  // namespace ag
