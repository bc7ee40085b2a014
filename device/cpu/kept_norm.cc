// InstanceNormalization and GroupNormalization: each group of channels of an image is a row of
// numbers with a mean and a deviation. LRN: each element by the squares of its neighbours'
// channels.
#include <algorithm>
#include <cmath>

#include "device/cpu/block_ops.h"
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

AG_CLONES void AddSquares(const float* x, int64_t n, float* sums) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) sums[i] += x[i] * x[i];
}

// Computes y = x / (bias + factor * sums) ^ (quarters / 4), for 2, 3 or 4 quarters.
AG_CLONES void DivideByPower(const float* x, const float* sums, int64_t n, float bias, float factor,
                             int quarters, float* y) {
  if (quarters == 4) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] / (bias + factor * sums[i]);
    return;
  }
  if (quarters == 2) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] / std::sqrt(bias + factor * sums[i]);
    return;
  }
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float root = std::sqrt(bias + factor * sums[i]);
    y[i] = x[i] / (root * std::sqrt(root));
  }
}

class KeptLrn : public Kernel {
 public:
  Status Prepare(const GroupContext& context, const KeptOperator& kept) {
    const KeptOperands operands(context, kept);
    NodeAttributes attributes(kept.node());
    if (!operands.Has(0) || !operands.IsPlainFloat()) return RefuseForm(kept);
    const Shape& x = operands.ShapeOf(0);
    size_ = attributes.Int("size", 0);
    const double quarters = attributes.Float("beta", 0.75) * 4;
    if (x.size() < 2 || NumElements(x) == 0 || !operands.ResultIs(0, x) || size_ < 1 ||
        (quarters != 2 && quarters != 3 && quarters != 4)) {
      return RefuseForm(kept);
    }
    quarters_ = static_cast<int>(quarters);
    factor_ = static_cast<float>(attributes.Float("alpha", 1e-4) / static_cast<double>(size_));
    bias_ = static_cast<float>(attributes.Float("bias", 1));
    batch_ = x[0];
    channels_ = x[1];
    inside_ = NumElements(std::span(x).subspan(2));
    cores_ = context.cores;
    AG_LET(x_, KeptOperand::Of(context, operands, 0));
    return OkStatus();
  }

  Status Run(const RunContext&, Inputs inputs, Outputs outputs) override {
    constexpr int64_t kBlock = 256;
    const auto* x = static_cast<const float*>(x_.At(inputs));
    auto* y = static_cast<float*>(outputs[0]);
    const int64_t blocks = (inside_ + kBlock - 1) / kBlock;
    const int64_t work = channels_ * std::min(inside_, kBlock);
    ParallelFor(cores_, batch_ * blocks, std::max<int64_t>(1, kLightGrain / work),
                [&](int64_t begin, int64_t end, int) {
                  for (int64_t i = begin; i < end; ++i) {
                    const int64_t at = i % blocks * kBlock;
                    const int64_t first = i / blocks * channels_ * inside_ + at;
                    RunBlock(x + first, std::min(kBlock, inside_ - at), y + first);
                  }
                });
    return OkStatus();
  }

 private:
  // Of all channels, so many elements.
  void RunBlock(const float* x, int64_t count, float* y) const {
    float sums[256];
    for (int64_t c = 0; c < channels_; ++c) {
      const int64_t low = std::max<int64_t>(c - (size_ - 1) / 2, 0);
      const int64_t high = std::min(c + size_ / 2, channels_ - 1);
      std::fill_n(sums, count, 0.0F);
      for (int64_t k = low; k <= high; ++k) AddSquares(x + k * inside_, count, sums);
      DivideByPower(x + c * inside_, sums, count, bias_, factor_, quarters_, y + c * inside_);
    }
  }

  KeptOperand x_;
  int64_t batch_ = 1, channels_ = 1, inside_ = 1, size_ = 1;
  float factor_ = 0, bias_ = 1;
  int quarters_ = 3;
  int cores_ = 1;
};

}  // namespace

StatusOr<std::unique_ptr<Kernel>> MakeLrn(const GroupContext& context, const KeptOperator& kept) {
  return PreparedKept<KeptLrn>(context, kept);
}

StatusOr<std::unique_ptr<Kernel>> MakeNorm(const GroupContext& context, const KeptOperator& kept) {
  return PreparedKept<KeptNorm>(context, kept);
}

}  // namespace ag::cpu
