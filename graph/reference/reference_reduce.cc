// Reference kernels of reductions and normalizations.
#include <algorithm>

#include "graph/reference/reference.h"

namespace ag::internal {
namespace {

// Calls take(to, from) for each operand element, in order: `to` is the offset of its result.
template <class T, class Take>
void Reduce(const KernelCall<T>& call, Take take) {
  const Shape& shape = call.in(0).shape;
  Shape kept = shape;
  for (const int64_t axis : call.node.IntList("axes")) kept[static_cast<size_t>(axis)] = 1;
  Walker<1> walker(shape, {BroadcastStrides(kept, shape)});
  for (size_t i = 0; i < call.in(0).values.size(); ++i, walker.Next()) {
    take(static_cast<size_t>(walker.offset(0)), i);
  }
}

template <class T>
Array<T> Sum(const KernelCall<T>& call) {
  Array<T> out(call.out_type().shape);
  const std::vector<T>& in = call.in(0).values;
  Reduce<T>(call, [&](size_t to, size_t from) { out.values[to] = out.values[to] + in[from]; });
  return out;
}

// Softmax of one line. exp(v - max) avoids overflow and gives the same quotients.
template <class T>
void SoftmaxLine(const T* in, T* out, int64_t count, int64_t step) {
  using S = Scalar<T>;
  T shift{};
  if constexpr (!S::kExact) {
    shift = in[0];
    for (int64_t i = 1; i < count; ++i) shift = std::max(shift, in[i * step]);
  }
  T sum{};
  for (int64_t i = 0; i < count; ++i) {
    out[i * step] = S::Exp(in[i * step] - shift);
    sum = sum + out[i * step];
  }
  for (int64_t i = 0; i < count; ++i) out[i * step] = out[i * step] / sum;
}

// Computes (x - mean) / sqrt(variance + epsilon) * scale + bias over `count` neighbours.
template <class T>
void NormalizeLine(const T* in, T* out, int64_t count, T epsilon, const T* scale, const T* bias) {
  using S = Scalar<T>;
  const T size = S::Of(static_cast<double>(count));
  T sum{}, squares{};
  for (int64_t i = 0; i < count; ++i) sum = sum + in[i];
  const T mean = sum / size;
  for (int64_t i = 0; i < count; ++i) squares = squares + (in[i] - mean) * (in[i] - mean);
  const T deviation = S::Sqrt(squares / size + epsilon);
  for (int64_t i = 0; i < count; ++i) out[i] = (in[i] - mean) / deviation * scale[i] + bias[i];
}

// Computes x / sqrt(mean of squares + epsilon) * scale over `count` neighbours.
template <class T>
void NormalizeByRootMeanSquare(const T* in, T* out, int64_t count, T epsilon, const T* scale) {
  using S = Scalar<T>;
  T squares{};
  for (int64_t i = 0; i < count; ++i) squares = squares + in[i] * in[i];
  const T root = S::Sqrt(squares / S::Of(static_cast<double>(count)) + epsilon);
  for (int64_t i = 0; i < count; ++i) out[i] = in[i] / root * scale[i];
}

}  // namespace

template <class T>
StatusOr<Arrays<T>> RefReduceSum(const KernelCall<T>& call) {
  return One(Sum(call));
}

template <class T>
StatusOr<Arrays<T>> RefReduceMean(const KernelCall<T>& call) {
  using S = Scalar<T>;
  int64_t count = 1;
  for (const int64_t axis : call.node.IntList("axes")) {
    count *= call.in(0).shape[static_cast<size_t>(axis)];
  }
  Array<T> out = Sum(call);
  const T size = S::Of(static_cast<double>(count));
  const bool whole = IsInteger(call.out_type().dtype);
  if constexpr (std::is_same_v<T, Whole>) {  // The sum wraps at 64 bits, as on devices.
    const bool is_unsigned = call.out_type().dtype == DType::kUInt64;
    for (T& value : out.values) {
      value = is_unsigned ? Whole(static_cast<uint64_t>(value.value))
                          : Whole(static_cast<int64_t>(value.value));
    }
  }
  for (T& value : out.values) value = whole ? S::Truncate(value / size) : value / size;
  return One(std::move(out));
}

template <class T>
StatusOr<Arrays<T>> RefReduceMax(const KernelCall<T>& call) {
  using S = Scalar<T>;
  Array<T> out(call.out_type().shape);
  std::vector<bool> seen(out.values.size());
  const std::vector<T>& in = call.in(0).values;
  Reduce<T>(call, [&](size_t to, size_t from) {
    T& best = out.values[to];
    const bool stays = seen[to] && !(best == best);
    const bool wins = !seen[to] || !(in[from] == in[from]) || S::Less(best, in[from]);
    if (!stays && wins) best = in[from];
    seen[to] = true;
  });
  return One(std::move(out));
}

template <class T>
StatusOr<Arrays<T>> RefSoftmax(const KernelCall<T>& call) {
  const Array<T>& x = call.in(0);
  Array<T> out(x.shape);
  const AxisView view = ViewAxis(x.shape, call.node.Int("axis"));
  if (view.axis == 0) return One(std::move(out));
  for (int64_t o = 0; o < view.outer; ++o) {
    for (int64_t i = 0; i < view.inner; ++i) {
      const int64_t at = o * view.axis * view.inner + i;
      SoftmaxLine(x.values.data() + at, out.values.data() + at, view.axis, view.inner);
    }
  }
  return One(std::move(out));
}

template <class T>
StatusOr<Arrays<T>> RefBatchNorm(const KernelCall<T>& call) {
  using S = Scalar<T>;
  const Array<T>&x = call.in(0), &scale = call.in(1), &bias = call.in(2), &mean = call.in(3);
  const Array<T>& variance = call.in(4);
  const T epsilon = S::Of(call.node.Float("epsilon"));
  Array<T> out(x.shape);
  const AxisView view = ViewAxis(x.shape, 1);
  for (int64_t o = 0; o < view.outer; ++o) {
    for (int64_t c = 0; c < view.axis; ++c) {
      const auto channel = static_cast<size_t>(c);
      const T deviation = S::Sqrt(variance.values[channel] + epsilon);
      const auto begin = static_cast<size_t>((o * view.axis + c) * view.inner);
      for (size_t i = begin; i < begin + static_cast<size_t>(view.inner); ++i) {
        out.values[i] = (x.values[i] - mean.values[channel]) / deviation * scale.values[channel] +
                        bias.values[channel];
      }
    }
  }
  return One(std::move(out));
}

template <class T>
StatusOr<Arrays<T>> RefLayerNorm(const KernelCall<T>& call) {
  const Array<T>&x = call.in(0), &scale = call.in(1), &bias = call.in(2);
  const T epsilon = Scalar<T>::Of(call.node.Float("epsilon"));
  Array<T> out(x.shape);
  const auto count = static_cast<int64_t>(scale.values.size());
  const auto total = static_cast<int64_t>(x.values.size());
  for (int64_t at = 0; at < total; at += count) {
    NormalizeLine(x.values.data() + at, out.values.data() + at, count, epsilon, scale.values.data(),
                  bias.values.data());
  }
  return One(std::move(out));
}

template <class T>
StatusOr<Arrays<T>> RefRmsNorm(const KernelCall<T>& call) {
  const Array<T>&x = call.in(0), &scale = call.in(1);
  const T epsilon = Scalar<T>::Of(call.node.Float("epsilon"));
  Array<T> out(x.shape);
  const auto count = static_cast<int64_t>(scale.values.size());
  const auto total = static_cast<int64_t>(x.values.size());
  for (int64_t at = 0; at < total; at += count) {
    NormalizeByRootMeanSquare(x.values.data() + at, out.values.data() + at, count, epsilon,
                              scale.values.data());
  }
  return One(std::move(out));
}

AG_KERNEL(RefReduceSum);
AG_KERNEL(RefReduceMean);
AG_KERNEL(RefReduceMax);
AG_KERNEL(RefSoftmax);
AG_KERNEL(RefBatchNorm);
AG_KERNEL(RefLayerNorm);
AG_KERNEL(RefRmsNorm);
AG_WHOLE_KERNEL(RefReduceSum);
AG_WHOLE_KERNEL(RefReduceMean);
AG_WHOLE_KERNEL(RefReduceMax);

}  // namespace ag::internal
