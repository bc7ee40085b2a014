// Softmax along any axis: dense rows by vectorized exponentials, others column by column.
#include <algorithm>

#include "device/cpu/block_ops.h"
#include "device/cpu/fast_math.h"
#include "device/cpu/float_rows.h"
#include "device/cpu/host.h"
#include "device/cpu/kernel.h"
#include "device/cpu/parallel.h"
#include "device/cpu/softmax_loops.h"

namespace ag::cpu {
namespace {

// One step along the axis for `n` neighbouring columns.
AG_CLONES void RaiseMax(const float* x, float* most, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) most[i] = std::max(most[i], x[i]);
}
AG_CLONES void AddExp(const float* x, const float* most, float* out, float* sum, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    out[i] = FastExp(x[i] - most[i]);
    sum[i] += out[i];
  }
}
AG_CLONES void Divide(float* x, const float* sum, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) x[i] /= sum[i];
}

class Softmax : public Kernel {
 public:
  Softmax(const TensorType& type, int64_t axis, int port, int cores) : port_(port), cores_(cores) {
    const std::span<const int64_t> shape(type.shape);
    outer_ = NumElements(shape.first(axis));
    size_ = shape[axis];
    inner_ = NumElements(shape.subspan(axis + 1));
    memory_ = FloatRows(type.dtype, size_, cores);
    is_bf16_ = type.dtype == DType::kBFloat16;
  }

  size_t scratch_bytes() const override { return memory_.scratch_bytes(); }

  Status Run(const RunContext& context, Inputs inputs, Outputs outputs) override {
    const auto* x = static_cast<const float*>(inputs[port_]);
    auto* y = static_cast<float*>(outputs[0]);
    if (size_ == 0 || inner_ == 0) return OkStatus();
    const int64_t grain = std::max<int64_t>(kLightGrain / 4 / (size_ * inner_), 1);
    ParallelFor(cores_, outer_, grain, [&](int64_t begin, int64_t end, int worker) {
      if (is_bf16_) {
        for (int64_t row = begin; row < end; ++row) {
          const float* from = memory_.Read(x, row, context.scratch, worker);
          memory_.Write(y, row, context.scratch, worker,
                        [&](float* to) { loops_.rows(from, to, 1, size_); });
        }
        return;
      }
      if (inner_ == 1) {
        return loops_.rows(x + begin * size_, y + begin * size_, end - begin, size_);
      }
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = i * size_ * inner_;
        Columns(x + at, y + at);
      }
    });
    return OkStatus();
  }

 private:
  void Columns(const float* x, float* y) const {
    constexpr int64_t kWidth = 64;
    float most[kWidth], sum[kWidth];
    for (int64_t column = 0; column < inner_; column += kWidth) {
      const int64_t n = std::min(kWidth, inner_ - column);
      std::copy_n(x + column, n, most);
      std::fill_n(sum, n, 0.0f);
      for (int64_t k = 1; k < size_; ++k) RaiseMax(x + k * inner_ + column, most, n);
      for (int64_t k = 0; k < size_; ++k) {
        AddExp(x + k * inner_ + column, most, y + k * inner_ + column, sum, n);
      }
      for (int64_t k = 0; k < size_; ++k) Divide(y + k * inner_ + column, sum, n);
    }
  }

  const SoftmaxLoops& loops_ = SoftmaxLoopsFor(InstructionSet());
  int port_;
  int cores_;
  bool is_bf16_ = false;  // Then inner_ is 1.
  FloatRows memory_;
  int64_t outer_ = 0, size_ = 0, inner_ = 0;
};

Status CheckSoftmax(const GroupContext& context) {
  const TensorType& type = context.node(0).outputs[0];
  AG_LET(const int port, context.InputPort(0, 0));
  const bool plain = context.group.inputs[port].layout == Layout::kPlain &&
                     context.group.outputs[0].layout == Layout::kPlain;
  const std::span<const int64_t> shape(type.shape);
  const bool is_last = NumElements(shape.subspan(context.node(0).Int("axis") + 1)) == 1;
  const bool is_computed = type.dtype == DType::kFloat32 || (context.stores_bf16 && is_last);
  if (is_computed && context.IsComputed(type.dtype) && plain) return OkStatus();
  return Err(StatusCode::kUnimplemented, "Softmax: {} is not plain f32", type.ToString());
}

StatusOr<std::vector<std::string>> SoftmaxNames(const GroupContext& context) {
  AG_TRY(CheckSoftmax(context));
  return std::vector<std::string>{"rows"};
}

StatusOr<std::unique_ptr<Kernel>> MakeSoftmax(const GroupContext& context, const std::string&,
                                              size_t* done) {
  AG_TRY(CheckSoftmax(context));
  *done = 1;
  const Node& node = context.node(0);
  return std::make_unique<Softmax>(node.outputs[0], node.Int("axis"),
                                   context.InputOf(node.inputs[0]), context.cores);
}

}  // namespace

const Family kSoftmaxFamily = {SoftmaxNames, MakeSoftmax};

}  // namespace ag::cpu
