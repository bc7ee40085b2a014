// Reference kernels of movement: elements change their places, no value is computed.
#include <algorithm>

#include "graph/reference/reference.h"
#include "graph/shapes.h"

namespace ag::internal {
namespace {

// Element at position p of the result = operand element at `origin` + sum of p * strides.
template <class T>
StatusOr<Arrays<T>> Gathered(const KernelCall<T>& call, int64_t origin, const Shape& strides) {
  Array<T> out(call.out_type().shape);
  Walker<1> walker(out.shape, {strides});
  for (T& value : out.values) {
    value = call.in(0).values[static_cast<size_t>(origin + walker.offset(0))];
    walker.Next();
  }
  return One(std::move(out));
}

// Returns the source of position `i` of a padded axis, or -1 for the pad value.
int64_t PadSource(int64_t i, int64_t size, const std::string& mode) {
  if (i >= 0 && i < size) return i;
  if (mode == "constant") return -1;
  if (mode == "edge") return std::clamp<int64_t>(i, 0, size - 1);
  return i < 0 ? -i : 2 * (size - 1) - i;  // Reflect, without repeating the border.
}

}  // namespace

template <class T>
StatusOr<Arrays<T>> NoKernel(const KernelCall<T>& call) {
  return Err(StatusCode::kUnimplemented, "{}: has no kernel", Info(call.node.op).text_name);
}

template <class T>
StatusOr<Arrays<T>> RefConcat(const KernelCall<T>& call) {
  Array<T> out(call.out_type().shape);
  const int64_t axis = call.node.Int("axis");
  const AxisView view = ViewAxis(out.shape, axis);
  int64_t begin = 0;
  for (const Array<T>* in : call.inputs) {
    const int64_t row = in->shape[static_cast<size_t>(axis)] * view.inner;
    for (int64_t o = 0; o < view.outer; ++o) {
      std::copy_n(in->values.data() + o * row, row,
                  out.values.data() + o * view.axis * view.inner + begin);
    }
    begin += row;
  }
  return One(std::move(out));
}

template <class T>
StatusOr<Arrays<T>> RefSplit(const KernelCall<T>& call) {
  const Array<T>& in = call.in(0);
  const int64_t axis = call.node.Int("axis");
  const AxisView view = ViewAxis(in.shape, axis);
  Arrays<T> outs;
  int64_t begin = 0;
  for (const TensorType& type : call.node.outputs) {
    Array<T> out(type.shape);
    const int64_t row = type.shape[static_cast<size_t>(axis)] * view.inner;
    for (int64_t o = 0; o < view.outer; ++o) {
      std::copy_n(in.values.data() + o * view.axis * view.inner + begin, row,
                  out.values.data() + o * row);
    }
    begin += row;
    outs.push_back(std::move(out));
  }
  return outs;
}

template <class T>
StatusOr<Arrays<T>> RefSlice(const KernelCall<T>& call) {
  const Ints& axes = call.node.IntList("axes");
  Shape strides = StridesOf(call.in(0).shape);
  int64_t origin = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    const SliceRange range =
        ResolveSlice(call.in(0).shape[axis], call.node.IntList("starts")[i],
                     call.node.IntList("ends")[i], call.node.IntList("steps")[i]);
    origin += range.start * strides[axis];
    // A single element may have any step, and the product with a stride could overflow.
    strides[axis] = range.count <= 1 ? 0 : strides[axis] * range.step;
  }
  return Gathered(call, origin, strides);
}

template <class T>
StatusOr<Arrays<T>> RefTranspose(const KernelCall<T>& call) {
  const Shape own = StridesOf(call.in(0).shape);
  Shape strides;
  for (const int64_t axis : call.node.IntList("perm")) {
    strides.push_back(own[static_cast<size_t>(axis)]);
  }
  return Gathered(call, 0, strides);
}

template <class T>
StatusOr<Arrays<T>> RefReshape(const KernelCall<T>& call) {
  return One(Array<T>(call.out_type().shape, call.in(0).values));
}

template <class T>
StatusOr<Arrays<T>> RefExpand(const KernelCall<T>& call) {
  return Gathered(call, 0, BroadcastStrides(call.in(0).shape, call.out_type().shape));
}

template <class T>
StatusOr<Arrays<T>> RefPad(const KernelCall<T>& call) {
  const Array<T>& in = call.in(0);
  const Ints& pads = call.node.IntList("pads");
  const std::string& mode = call.node.attributes->String("mode");
  const T value = Held<T>(call.out_type().dtype, call.node.Float("value"));
  Array<T> out(call.out_type().shape);
  const Shape strides = StridesOf(in.shape);
  Shape at(out.shape.size(), 0);
  for (T& result : out.values) {
    int64_t offset = 0;
    bool inside = true;
    for (size_t axis = 0; axis < at.size(); ++axis) {
      const int64_t source = PadSource(at[axis] - pads[axis], in.shape[axis], mode);
      inside = inside && source >= 0;
      offset += source * strides[axis];
    }
    result = inside ? in.values[static_cast<size_t>(offset)] : value;
    for (size_t axis = at.size(); axis-- > 0;) {
      if (++at[axis] < out.shape[axis]) break;
      at[axis] = 0;
    }
  }
  return One(std::move(out));
}

template <class T>
StatusOr<Arrays<T>> RefGather(const KernelCall<T>& call) {
  const Array<T>&data = call.in(0), &indices = call.in(1);
  const AxisView view = ViewAxis(data.shape, call.node.Int("axis"));
  Array<T> out(call.out_type().shape);
  const auto count = static_cast<int64_t>(indices.values.size());
  for (int64_t i = 0; i < count; ++i) {
    const std::optional<int64_t> index = Scalar<T>::ToInt(indices.values[static_cast<size_t>(i)]);
    if (!index.has_value() || *index < -view.axis || *index >= view.axis) {
      return Err(StatusCode::kOutOfRange, "gather: index {} is outside [{}, {})", index.value_or(0),
                 -view.axis, view.axis);
    }
    const int64_t from = *index < 0 ? *index + view.axis : *index;
    for (int64_t o = 0; o < view.outer; ++o) {
      std::copy_n(data.values.data() + (o * view.axis + from) * view.inner, view.inner,
                  out.values.data() + (o * count + i) * view.inner);
    }
  }
  return One(std::move(out));
}

AG_KERNEL(NoKernel);
AG_KERNEL(RefConcat);
AG_KERNEL(RefSplit);
AG_KERNEL(RefSlice);
AG_KERNEL(RefTranspose);
AG_KERNEL(RefReshape);
AG_KERNEL(RefExpand);
AG_KERNEL(RefPad);
AG_KERNEL(RefGather);
AG_WHOLE_KERNEL(RefConcat);
AG_WHOLE_KERNEL(RefSplit);
AG_WHOLE_KERNEL(RefSlice);
AG_WHOLE_KERNEL(RefTranspose);
AG_WHOLE_KERNEL(RefReshape);
AG_WHOLE_KERNEL(RefExpand);
AG_WHOLE_KERNEL(RefPad);
AG_WHOLE_KERNEL(RefGather);

}  // namespace ag::internal
