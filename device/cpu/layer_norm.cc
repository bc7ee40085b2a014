// Layer norm and RMS norm over the trailing axes.
#include <algorithm>
#include <cmath>

#include "device/cpu/block_ops.h"
#include "device/cpu/kernel.h"
#include "device/cpu/parallel.h"
#include "device/cpu/row_sums.h"

namespace ag::cpu {
namespace {

AG_CLONES void Normalize(const float* x, const float* scale, const float* bias, float* y, int64_t n,
                         float mean, float factor) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * factor * scale[i] + bias[i];
}

AG_CLONES void Scale(const float* x, const float* scale, float* y, int64_t n, float factor) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * factor * scale[i];
}

class LayerNorm : public Kernel {
 public:
  Status Prepare(const GroupContext& context) {
    const Node& node = context.node(0);
    const std::span<const int64_t> shape(node.outputs[0].shape);
    cores_ = context.cores;
    rows_ = NumElements(shape.first(node.Int("axis")));
    size_ = NumElements(shape.subspan(node.Int("axis")));
    epsilon_ = node.Float("epsilon");
    centred_ = node.op == OpKind::kLayerNorm;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      ports_[i] = context.InputOf(node.inputs[i]);
      if (ports_[i] >= 0) continue;
      AG_LET(held_[i], context.constants->Get(node.inputs[i]));
    }
    return OkStatus();
  }

  Status Run(const RunContext&, Inputs inputs, Outputs outputs) override {
    const float *x = Operand(inputs, 0), *scale = Operand(inputs, 1);
    const float* bias = centred_ ? Operand(inputs, 2) : nullptr;
    auto* y = static_cast<float*>(outputs[0]);
    if (size_ == 0) return OkStatus();
    const int64_t grain = std::max<int64_t>(kLightGrain / size_, 1);
    ParallelFor(cores_, rows_, grain, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row) {
        const float* from = x + row * size_;
        const auto count = static_cast<float>(size_);
        const auto mean = static_cast<float>(centred_ ? SumOfRow(from, size_) / count : 0);
        const double variance = SumOfSquaresOfRow(from, size_, mean) / count;
        const auto factor = static_cast<float>(1.0 / std::sqrt(variance + epsilon_));
        float* to = y + row * size_;
        if (centred_) {
          Normalize(from, scale, bias, to, size_, mean, factor);
        } else {
          Scale(from, scale, to, size_, factor);
        }
      }
    });
    return OkStatus();
  }

 private:
  const float* Operand(Inputs inputs, int i) const {
    return ports_[i] >= 0 ? static_cast<const float*>(inputs[ports_[i]])
                          : held_[i].As<float>().data();
  }

  int cores_ = 1;
  bool centred_ = true;  // Layer norm: subtract the mean, add a bias.
  int64_t rows_ = 0, size_ = 0;
  double epsilon_ = 0;
  int ports_[3] = {-1, -1, -1};
  Tensor held_[3];
};

Status CheckLayerNorm(const GroupContext& context) {
  const TensorType& type = context.node(0).outputs[0];
  bool plain = context.group.outputs[0].layout == Layout::kPlain;
  for (const Port& port : context.group.inputs) plain &= port.layout == Layout::kPlain;
  if (type.dtype == DType::kFloat32 && plain) return OkStatus();
  return Err(StatusCode::kUnimplemented, "{}: {} is not plain f32", Info(context.node(0).op).name,
             type.ToString());
}

StatusOr<std::vector<std::string>> LayerNormNames(const GroupContext& context) {
  AG_TRY(CheckLayerNorm(context));
  return std::vector<std::string>{"rows"};
}

StatusOr<std::unique_ptr<Kernel>> MakeLayerNorm(const GroupContext& context, const std::string&,
                                                size_t* done) {
  AG_TRY(CheckLayerNorm(context));
  *done = 1;
  auto kernel = std::make_unique<LayerNorm>();
  AG_TRY(kernel->Prepare(context));
  return kernel;
}

}  // namespace

const Family kLayerNormFamily = {LayerNormNames, MakeLayerNorm};

}  // namespace ag::cpu
