// The reference kernel of resampling: one axis after the other, because weights of axes multiply.
#include "graph/reference/reference.h"
#include "graph/resize.h"

namespace ag::internal {
namespace {

template <class T>
Array<T> Along(const Array<T>& x, size_t axis, const Resize& resize) {
  const ResizeTaps taps = TapsOf(resize, axis);
  std::vector<T> weights;
  for (const double weight : taps.weights) weights.push_back(Scalar<T>::Of(weight));
  Shape shape = x.shape;
  shape[axis] = resize.axes[axis].out;
  Array<T> out(shape);
  const AxisView from = ViewAxis(x.shape, static_cast<int64_t>(axis));
  const bool moves = resize.mode == Resize::Mode::kNearest;
  auto to = out.values.begin();
  for (int64_t o = 0; o < from.outer; ++o) {
    for (int64_t i = 0; i < shape[axis]; ++i) {
      for (int64_t n = 0; n < from.inner; ++n, ++to) {
        for (int64_t t = i * taps.count; t < (i + 1) * taps.count; ++t) {
          const T& value = x.values[(o * from.axis + taps.elements[t]) * from.inner + n];
          *to = moves ? value : *to + weights[t] * value;
        }
      }
    }
  }
  return out;
}

}  // namespace

template <class T>
StatusOr<Arrays<T>> RefResize(const KernelCall<T>& call) {
  const Resize resize = ResizeOf(*call.node.attributes, call.types[0]->shape);
  Array<T> x = call.in(0);
  for (size_t axis = 0; axis < resize.axes.size(); ++axis) {
    if (!resize.axes[axis].is_identity) x = Along(x, axis, resize);
  }
  return One(std::move(x));
}

AG_KERNEL(RefResize);

}  // namespace ag::internal
