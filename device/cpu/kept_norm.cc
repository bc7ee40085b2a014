// InstanceNormalization and GroupNormalization: each group of channels of an image is a row of
// numbers with a mean and a deviation.
#include <algorithm>
#include <cmath>

#include "device/cpu/kept.h"
#include "device/cpu/parallel.h"
#include "device/cpu/row_sums.h"
#include "graph/onnx/node_attributes.h"

namespace ag::cpu {
namespace {

AG_CLONES void ScaleAndShift(const float* x, float* y, int64_t n, float factor, float shift) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * factor + shift;
}

class KeptNorm : public Kernel {
 public:
  Status Prepare(const GroupContext& context, const KeptOperator& kept) {
    const KeptOperands operands(context, kept);
    NodeAttributes attributes(kept.node());
    if (!operands.Has(0) || !operands.Has(1) || !operands.Has(2) || !operands.IsPlainFloat()) {
      return RefuseForm(kept);
    }
    const Shape& x = operands.ShapeOf(0);
    if (x.size() < 2 || NumElements(x) == 0 || context.node(0).outputs[0].shape != x) {
      return RefuseForm(kept);
    }
    channels_ = x[1];
    groups_ = kept.node().op_type == "InstanceNormalization" ? channels_
                                                             : attributes.Int("num_groups", 0);
    if (groups_ < 1 || channels_ % groups_ != 0) return RefuseForm(kept);
    rows_ = x[0] * groups_;
    inside_ = NumElements(std::span(x).subspan(2));
    // Until opset 21 scale and bias of a group normalization were by group.
    by_group_ = kept.node().op_type == "GroupNormalization" && kept.opset() < 21;
    const Shape vector{by_group_ ? groups_ : channels_};
    if (operands.ShapeOf(1) != vector || operands.ShapeOf(2) != vector) return RefuseForm(kept);
    epsilon_ = attributes.Float("epsilon", 1e-5);
    cores_ = context.cores;
    for (size_t i = 0; i < 3; ++i) {
      AG_LET(operands_[i], KeptOperand::Of(context, operands, i));
    }
    return OkStatus();
  }

  Status Run(const RunContext&, Inputs inputs, Outputs outputs) override {
    const auto* x = static_cast<const float*>(operands_[0].At(inputs));
    const auto* scale = static_cast<const float*>(operands_[1].At(inputs));
    const auto* bias = static_cast<const float*>(operands_[2].At(inputs));
    auto* y = static_cast<float*>(outputs[0]);
    const int64_t own = channels_ / groups_, size = own * inside_;
    const int64_t grain = std::max<int64_t>(kLightGrain / size, 1);
    ParallelFor(cores_, rows_, grain, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row) {
        const float* from = x + row * size;
        const auto count = static_cast<double>(size);
        const double mean = SumOfRow(from, size) / count;
        const double variance = SumOfSquaresOfRow(from, size, static_cast<float>(mean)) / count;
        const double factor = 1.0 / std::sqrt(variance + epsilon_);
        const int64_t group = row % groups_;
        for (int64_t c = 0; c < own; ++c) {
          const int64_t at = by_group_ ? group : group * own + c;
          const double by = scale[at] * factor;
          ScaleAndShift(from + c * inside_, y + row * size + c * inside_, inside_,
                        static_cast<float>(by), static_cast<float>(bias[at] - mean * by));
        }
      }
    });
    return OkStatus();
  }

 private:
  KeptOperand operands_[3];
  int cores_ = 1;
  int64_t channels_ = 1, groups_ = 1;
  int64_t rows_ = 1;    // Groups of all images.
  int64_t inside_ = 1;  // Elements of a channel.
  bool by_group_ = false;
  double epsilon_ = 0;
};

}  // namespace

StatusOr<std::unique_ptr<Kernel>> MakeNorm(const GroupContext& context, const KeptOperator& kept) {
  return PreparedKept<KeptNorm>(context, kept);
}

}  // namespace ag::cpu
