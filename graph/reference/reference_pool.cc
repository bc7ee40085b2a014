// Reference kernels of pooling.
#include <limits>

#include "graph/reference/reference.h"

namespace ag::internal {
namespace {

// The elements of the plane that one window covers, and its number of positions inside the padded
// input. In ceil_mode a window may also reach beyond the padding.
struct Covered {
  std::vector<int64_t> offsets;
  int64_t padded_count = 0;
};

class Windows {
 public:
  Windows(const Node& node, std::span<const int64_t> x, std::span<const int64_t> out)
      : x_(x.subspan(2)), out_(out.subspan(2)) {
    kernel_ = node.IntList("kernel_shape");
    strides_ = node.IntList("strides");
    pads_ = node.IntList("pads");
    dilations_ = node.IntList("dilations");
  }

  Covered Of(int64_t position) const {
    Shape origin(out_.size());
    for (size_t axis = out_.size(); axis-- > 0; position /= out_[axis]) {
      origin[axis] = position % out_[axis] * strides_[axis] - pads_[axis];
    }
    Covered covered;
    const int64_t taps = NumElements(kernel_);
    for (int64_t t = 0; t < taps; ++t) AddTap(t, origin, &covered);
    return covered;
  }

 private:
  void AddTap(int64_t tap, const Shape& origin, Covered* covered) const {
    int64_t offset = 0, pitch = 1;
    bool inside = true, padded = true;
    for (size_t axis = out_.size(); axis-- > 0; tap /= kernel_[axis]) {
      const int64_t i = origin[axis] + tap % kernel_[axis] * dilations_[axis];
      inside = inside && i >= 0 && i < x_[axis];
      padded = padded && i < x_[axis] + pads_[out_.size() + axis];
      offset += i * pitch;
      pitch *= x_[axis];
    }
    if (inside) covered->offsets.push_back(offset);
    if (padded) ++covered->padded_count;
  }

  std::span<const int64_t> x_, out_;
  Ints kernel_, strides_, pads_, dilations_;
};

// Calls fold(plane, covered) for each output element. All channels have the same windows.
template <class T, class Fold>
StatusOr<Arrays<T>> Pool(const KernelCall<T>& call, Fold fold) {
  const Array<T>& x = call.in(0);
  Array<T> out(call.out_type().shape);
  const Windows windows(call.node, x.shape, out.shape);
  const int64_t planes = x.shape[0] * x.shape[1];
  const int64_t plane = NumElements(std::span<const int64_t>(x.shape).subspan(2));
  const int64_t positions = NumElements(std::span<const int64_t>(out.shape).subspan(2));
  for (int64_t i = 0; i < positions; ++i) {
    const Covered covered = windows.Of(i);
    for (int64_t p = 0; p < planes; ++p) {
      out.values[static_cast<size_t>(p * positions + i)] =
          fold(x.values.data() + p * plane, covered);
    }
  }
  return One(std::move(out));
}

}  // namespace

template <class T>
StatusOr<Arrays<T>> RefMaxPool(const KernelCall<T>& call) {
  using S = Scalar<T>;
  return Pool<T>(call, [](const T* plane, const Covered& covered) {
    // All dilated taps may be in the padding; the maximum of nothing is -infinity.
    if (covered.offsets.empty()) return S::Of(-std::numeric_limits<double>::infinity());
    T best = plane[covered.offsets[0]];
    for (const int64_t offset : covered.offsets) {
      const T v = plane[offset];
      if (!(best == best)) break;  // NaN or poison.
      if (!(v == v) || S::Less(best, v)) best = v;
    }
    return best;
  });
}

template <class T>
StatusOr<Arrays<T>> RefAveragePool(const KernelCall<T>& call) {
  const bool with_pad = call.node.Int("count_include_pad") != 0;
  return Pool<T>(call, [with_pad](const T* plane, const Covered& covered) {
    T sum{};
    for (const int64_t offset : covered.offsets) sum = sum + plane[offset];
    const auto inside = static_cast<int64_t>(covered.offsets.size());
    return sum / Scalar<T>::Of(static_cast<double>(with_pad ? covered.padded_count : inside));
  });
}

AG_KERNEL(RefMaxPool);
AG_KERNEL(RefAveragePool);

}  // namespace ag::internal
