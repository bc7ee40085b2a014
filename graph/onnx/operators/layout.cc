#include "graph/onnx/operators/layout.h"

#include <cstring>

#include "graph/shapes.h"

namespace ag::onnx_operators {
namespace {

template <int64_t width>
void CopyElements(const Shape& shape, const char* from, const Ints& strides, char* to) {
  Walk<1>(shape, {strides}, [&](const std::array<int64_t, 1>& offsets) {
    std::memcpy(to, from + offsets[0] * width, width);
    to += width;
  });
}

}  // namespace

int64_t ElementsOf(const Shape& shape, int64_t first, int64_t last) {
  return NumElements({shape.data() + first, static_cast<size_t>(last - first)});
}

AxisView ViewAlong(const Shape& shape, int64_t axis) {
  return {.outer = ElementsOf(shape, 0, axis),
          .size = shape[axis],
          .inner = ElementsOf(shape, axis + 1, static_cast<int64_t>(shape.size()))};
}

Ints StridesOf(const Shape& shape) {
  Ints strides(shape.size());
  int64_t step = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = step;
    step *= std::max<int64_t>(shape[axis], 1);
  }
  return strides;
}

StatusOr<Shape> BroadcastOf(const OperatorCall& call, size_t first) {
  Shape shape = call.ShapeOf(first);
  for (size_t i = first + 1; i < call.size(); ++i) {
    AG_LET(shape, BroadcastShapes(shape, call.ShapeOf(i)));
  }
  return shape;
}

StatusOr<std::vector<double>> SpreadOf(const OperatorCall& call, size_t i, const Shape& shape) {
  const StatusOr<Shape> all = BroadcastShapes(call.ShapeOf(i), shape);
  if (!all.ok() || *all != shape) {
    return Err(StatusCode::kInvalidArgument, "input {}: {} does not broadcast to {}", i,
               call.Type(i).ToString(), ShapeToString(shape));
  }
  const std::vector<double> own = call.In(i).ToDoubles();
  std::vector<double> spread;
  spread.reserve(static_cast<size_t>(NumElements(shape)));
  Walk<1>(shape, {BroadcastStrides(call.ShapeOf(i), shape)},
          [&](const std::array<int64_t, 1>& at) { spread.push_back(own[at[0]]); });
  return spread;
}

Ints BroadcastStrides(const Shape& from, const Shape& to) {
  const Ints own = StridesOf(from);
  Ints strides(to.size());
  const size_t shift = to.size() - from.size();
  for (size_t axis = 0; axis < from.size(); ++axis) {
    strides[shift + axis] = from[axis] == to[shift + axis] ? own[axis] : 0;
  }
  return strides;
}

void CopyStrided(const Shape& shape, const char* from, const Ints& strides, int64_t width,
                 char* to) {
  switch (width) {
    case 1:
      return CopyElements<1>(shape, from, strides, to);
    case 2:
      return CopyElements<2>(shape, from, strides, to);
    case 4:
      return CopyElements<4>(shape, from, strides, to);
    case 8:
      return CopyElements<8>(shape, from, strides, to);
    default:
      Walk<1>(shape, {strides}, [&](const std::array<int64_t, 1>& offsets) {
        std::memcpy(to, from + offsets[0] * width, width);
        to += width;
      });
  }
}

void FillWith(const char* element, int64_t width, int64_t count, char* to) {
  for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * width, element, width);
}

StatusOr<int64_t> ResolveIndex(int64_t index, int64_t size) {
  if (index >= -size && index < size) return index < 0 ? index + size : index;
  return Err(StatusCode::kOutOfRange, "index {} is outside [{}, {})", index, -size, size);
}

}  // namespace ag::onnx_operators
