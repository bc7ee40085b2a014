// MaxPool and AveragePool over three axes: for each row of the result, rows of the input are
// combined element by element, then the elements of that row that a window covers.
#include <algorithm>
#include <limits>

#include "device/cpu/block_ops.h"
#include "device/cpu/kept.h"
#include "device/cpu/parallel.h"
#include "graph/onnx/node_attributes.h"

namespace ag::cpu {
namespace {

AG_CLONES void MaxInto(const float* x, float* row, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) row[i] = x[i] > row[i] ? x[i] : row[i];
}

AG_CLONES void AddInto(const float* x, float* row, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) row[i] += x[i];
}

// Takes every second, third, ... element of x.
AG_CLONES void MaxOfEach(const float* x, int64_t stride, float* to, int64_t n) {
  if (stride == 2) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) to[i] = x[2 * i] > to[i] ? x[2 * i] : to[i];
    return;
  }
  for (int64_t i = 0; i < n; ++i) to[i] = x[i * stride] > to[i] ? x[i * stride] : to[i];
}

AG_CLONES void AddEach(const float* x, int64_t stride, float* to, int64_t n) {
  if (stride == 2) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) to[i] += x[2 * i];
    return;
  }
  for (int64_t i = 0; i < n; ++i) to[i] += x[i * stride];
}

AG_CLONES void DivideBy(const float* counts, float others, float* to, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) to[i] /= others * counts[i];
}

struct PoolAxis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, begin = 0, end = 0;

  int64_t At(int64_t place, int64_t element) const {
    return place * stride - begin + element * dilation;
  }
  bool Holds(int64_t at) const { return at >= 0 && at < in; }
  // Returns how many elements of the window a mean is over. What ceil_mode adds beyond the padding
  // does not count.
  int64_t Counted(int64_t place, bool with_padding) const {
    int64_t count = 0;
    for (int64_t k = 0; k < kernel; ++k) {
      const int64_t at = At(place, k);
      count += (with_padding ? at < in + end : Holds(at)) ? 1 : 0;
    }
    return count;
  }
};

class KeptPool : public Kernel {
 public:
  Status Prepare(const GroupContext& context, const KeptOperator& kept) {
    const KeptOperands operands(context, kept);
    NodeAttributes attributes(kept.node());
    is_max_ = kept.node().op_type == "MaxPool";
    const bool one = kept.node().outputs.size() == 1 || kept.node().outputs[1].empty();
    if (!operands.Has(0) || !operands.IsPlainFloat() || !one) return RefuseForm(kept);
    const Shape &x = operands.ShapeOf(0), &y = context.node(0).outputs[0].shape;
    if (x.size() != 5 || y.size() != 5 || NumElements(x) == 0 || y[0] != x[0] || y[1] != x[1]) {
      return RefuseForm(kept);
    }
    AG_LET(const KeptWindow window, KeptWindowOf(kept, x, y, {}));
    for (size_t i = 0; i < 3; ++i) {
      axes_[i] = {
          x[i + 2],        y[i + 2],     window.kernel[i], window.strides[i], window.dilations[i],
          window.begin[i], window.end[i]};
    }
    with_padding_ = attributes.Int("count_include_pad", 0) != 0;
    for (int64_t w = 0; w < axes_[2].out; ++w) {
      counts_.push_back(static_cast<float>(axes_[2].Counted(w, with_padding_)));
    }
    planes_ = x[0] * x[1];
    cores_ = context.cores;
    AG_LET(x_, KeptOperand::Of(context, operands, 0));
    return OkStatus();
  }

  size_t scratch_bytes() const override { return RowBytes() * static_cast<size_t>(cores_); }

  Status Run(const RunContext& context, Inputs inputs, Outputs outputs) override {
    const auto* x = static_cast<const float*>(x_.At(inputs));
    auto* y = static_cast<float*>(outputs[0]);
    const PoolAxis &depth = axes_[0], &height = axes_[1], &width = axes_[2];
    const int64_t rows = planes_ * depth.out * height.out;
    const int64_t work = width.in * depth.kernel * height.kernel;
    const int64_t grain = std::max<int64_t>(1, kLightGrain / work);
    ParallelFor(cores_, rows, grain, [&](int64_t begin, int64_t end, int worker) {
      auto* row = reinterpret_cast<float*>(context.scratch + RowBytes() * worker);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t h = i % height.out, d = i / height.out % depth.out;
        const int64_t plane = i / (height.out * depth.out);
        RunRow(x + plane * depth.in * height.in * width.in, d, h, row, y + i * width.out);
      }
    });
    return OkStatus();
  }

 private:
  size_t RowBytes() const { return AlignUp(static_cast<size_t>(axes_[2].in) * sizeof(float)); }

  void RunRow(const float* plane, int64_t d, int64_t h, float* row, float* to) const {
    const PoolAxis &depth = axes_[0], &height = axes_[1], &width = axes_[2];
    const float start = is_max_ ? -std::numeric_limits<float>::infinity() : 0;
    std::fill_n(row, width.in, start);
    for (int64_t i = 0; i < depth.kernel; ++i) {
      for (int64_t j = 0; j < height.kernel; ++j) {
        const int64_t a = depth.At(d, i), b = height.At(h, j);
        if (!depth.Holds(a) || !height.Holds(b)) continue;
        const float* from = plane + (a * height.in + b) * width.in;
        is_max_ ? MaxInto(from, row, width.in) : AddInto(from, row, width.in);
      }
    }
    std::fill_n(to, width.out, start);
    for (int64_t k = 0; k < width.kernel; ++k) {
      const int64_t at = width.At(0, k);
      // The places whose element k is inside.
      const int64_t first = at >= 0 ? 0 : (-at + width.stride - 1) / width.stride;
      const int64_t last = at >= width.in ? 0 : (width.in - 1 - at) / width.stride + 1;
      const int64_t n = std::min(last, width.out) - first;
      if (n <= 0) continue;
      const float* from = row + at + first * width.stride;
      if (width.stride == 1) {
        is_max_ ? MaxInto(from, to + first, n) : AddInto(from, to + first, n);
      } else {
        (is_max_ ? MaxOfEach : AddEach)(from, width.stride, to + first, n);
      }
    }
    if (is_max_) return;
    const int64_t others = depth.Counted(d, with_padding_) * height.Counted(h, with_padding_);
    DivideBy(counts_.data(), static_cast<float>(others), to, width.out);
  }

  KeptOperand x_;
  PoolAxis axes_[3];
  bool is_max_ = true, with_padding_ = false;
  std::vector<float> counts_;  // Along a row: elements that a mean is over.
  int64_t planes_ = 1;
  int cores_ = 1;
};

}  // namespace

StatusOr<std::unique_ptr<Kernel>> MakeKeptPool(const GroupContext& context,
                                               const KeptOperator& kept) {
  return PreparedKept<KeptPool>(context, kept);
}

}  // namespace ag::cpu
