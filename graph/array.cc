#include "graph/array.h"

namespace ag {

Shape StridesOf(std::span<const int64_t> shape) {
  Shape strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

Shape BroadcastStrides(std::span<const int64_t> shape, std::span<const int64_t> as) {
  const Shape own = StridesOf(shape);
  const size_t offset = as.size() - shape.size();
  Shape strides(as.size(), 0);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 1) strides[offset + i] = own[i];
  }
  return strides;
}

AxisView ViewAxis(std::span<const int64_t> shape, int64_t axis) {
  const auto at = static_cast<size_t>(axis);
  return {.outer = NumElements(shape.first(at)),
          .axis = shape[at],
          .inner = NumElements(shape.subspan(at + 1))};
}

}  // namespace ag
