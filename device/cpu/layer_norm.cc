// Layer norm and RMS norm over the trailing axes, also of what a chain makes: a core computes some
// rows of the chain and normalizes them while they lie in its cache.
#include <algorithm>
#include <cmath>

#include "device/cpu/block_ops.h"
#include "device/cpu/chain.h"
#include "device/cpu/float_rows.h"
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

// The elements that a core computes of a chain before it normalizes them.
constexpr int64_t kPartElements = 4096;

bool IsNorm(OpKind op) { return op == OpKind::kLayerNorm || op == OpKind::kRmsNorm; }

// Returns the position of the norm in the group: the first operator, or the last one behind a
// chain.
size_t NormOf(const GroupContext& context) {
  return IsNorm(context.node(0).op) ? 0 : context.group.nodes.size() - 1;
}

// Returns the position of the norm's result among the group's outputs.
size_t OutputOf(const GroupContext& context) {
  const Edge result{context.group.nodes[NormOf(context)], 0};
  const auto& outputs = context.group.outputs;
  return std::ranges::find(outputs, result, &Port::edge) - outputs.begin();
}

// The chain in front of a norm: the group without it. Its first output is what the norm reads.
class ChainBefore {
 public:
  explicit ChainBefore(const GroupContext& context)
      : group_(context.group),
        context_{.graph = context.graph,
                 .group = group_,
                 .cores = context.cores,
                 .constants = context.constants,
                 .wide = context.wide,
                 .stores_bf16 = context.stores_bf16} {
    const Edge read = context.node(NormOf(context)).inputs[0];
    group_.nodes.pop_back();
    group_.outputs = {{read, Layout::kPlain}};
    // Where no other operator reads it, the norm's output holds it for a while.
    slots_ = {OutputOf(context)};
    for (size_t i = 0; i < context.group.outputs.size(); ++i) {
      const Port& port = context.group.outputs[i];
      if (port.edge == read) {
        slots_[0] = i;
      } else if (i != OutputOf(context)) {
        group_.outputs.push_back(port);
        slots_.push_back(i);
      }
    }
  }
  ChainBefore(const ChainBefore&) = delete;
  ChainBefore& operator=(const ChainBefore&) = delete;

  const GroupContext& context() const { return context_; }
  // By output of the chain: the output of the whole group that holds it.
  const std::vector<size_t>& slots() const { return slots_; }

 private:
  Group group_;
  GroupContext context_;
  std::vector<size_t> slots_;
};

class LayerNorm : public Kernel {
 public:
  Status Prepare(const GroupContext& context) {
    const Node& node = context.node(NormOf(context));
    const std::span<const int64_t> shape(node.outputs[0].shape);
    cores_ = context.cores;
    rows_ = NumElements(shape.first(node.Int("axis")));
    size_ = NumElements(shape.subspan(node.Int("axis")));
    epsilon_ = node.Float("epsilon");
    centred_ = node.op == OpKind::kLayerNorm;
    memory_ = FloatRows(node.outputs[0].dtype, size_, cores_);
    const bool has_chain = NormOf(context) > 0;
    output_ = has_chain ? OutputOf(context) : 0;
    for (size_t i = has_chain ? 1 : 0; i < node.inputs.size(); ++i) {
      ports_[i] = context.InputOf(node.inputs[i]);
      if (ports_[i] >= 0) continue;
      AG_LET(held_[i], context.FloatConstants()->Get(node.inputs[i]));
    }
    if (!has_chain) return OkStatus();
    const ChainBefore before(context);
    AG_LET(chain_, MakeChainParts(before.context()));
    slots_ = before.slots();
    made_.resize(slots_.size());
    return OkStatus();
  }

  size_t scratch_bytes() const override { return memory_.scratch_bytes(); }

  Status Run(const RunContext& context, Inputs inputs, Outputs outputs) override {
    if (size_ == 0) return OkStatus();
    for (size_t i = 0; i < slots_.size(); ++i) made_[i] = outputs[slots_[i]];
    const int64_t grain = std::max<int64_t>(kLightGrain / size_, 1);
    ParallelFor(cores_, rows_, grain, [&](int64_t begin, int64_t end, int worker) {
      if (chain_ == nullptr) {
        const void* x = ports_[0] >= 0 ? inputs[ports_[0]] : held_[0].As<float>().data();
        Rows({begin, end, worker}, x, context.scratch, inputs, outputs);
        return;
      }
      const int64_t step = std::max<int64_t>(kPartElements / size_, 1);
      for (int64_t row = begin; row < end; row += step) {
        const int64_t last = std::min(row + step, end);
        chain_->Run(row * size_, last * size_, worker, inputs, made_);
        Rows({row, last, worker}, made_[0], context.scratch, inputs, outputs);
      }
    });
    return OkStatus();
  }

 private:
  const float* Operand(Inputs inputs, int i) const {
    return ports_[i] >= 0 ? static_cast<const float*>(inputs[ports_[i]])
                          : held_[i].As<float>().data();
  }

  // Rows of one worker.
  struct Part {
    int64_t begin = 0, end = 0;
    int worker = 0;
  };

  // Normalizes rows of x, which may be the output.
  void Rows(Part part, const void* x, std::byte* scratch, Inputs inputs, Outputs outputs) const {
    const float* scale = Operand(inputs, 1);
    const float* bias = centred_ ? Operand(inputs, 2) : nullptr;
    for (int64_t row = part.begin; row < part.end; ++row) {
      const float* from = memory_.Read(x, row, scratch, part.worker);
      const auto count = static_cast<float>(size_);
      const auto mean = static_cast<float>(centred_ ? SumOfRow(from, size_) / count : 0);
      const double variance = SumOfSquaresOfRow(from, size_, mean) / count;
      const auto factor = static_cast<float>(1.0 / std::sqrt(variance + epsilon_));
      memory_.Write(outputs[output_], row, scratch, part.worker, [&](float* to) {
        centred_ ? Normalize(from, scale, bias, to, size_, mean, factor)
                 : Scale(from, scale, to, size_, factor);
      });
    }
  }

  int cores_ = 1;
  bool centred_ = true;  // Layer norm: subtract the mean, add a bias.
  int64_t rows_ = 0, size_ = 0;
  double epsilon_ = 0;
  FloatRows memory_;  // Of x and the result.
  int ports_[3] = {-1, -1, -1};
  Tensor held_[3];
  size_t output_ = 0;
  std::unique_ptr<ChainParts> chain_;  // Null: the norm stands first.
  std::vector<size_t> slots_;
  std::vector<void*> made_;  // The chain's outputs.
};

Status CheckLayerNorm(const GroupContext& context) {
  const Node& node = context.node(NormOf(context));
  const TensorType& type = node.outputs[0];
  if (!context.IsComputed(type.dtype) || !ArePlain(context.group)) {
    return Err(StatusCode::kUnimplemented, "{}: {} is not plain f32", Info(node.op).name,
               type.ToString());
  }
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const bool is_made = context.IsInside(node.inputs[i].node);
    // Scale and bias are read as f32.
    const bool is_half = type.dtype != DType::kFloat32 && context.InputOf(node.inputs[i]) >= 0;
    if (!is_made && !is_half) continue;
    return Err(StatusCode::kUnimplemented, "{}: operand {} is {}", Info(node.op).name, i,
               is_made ? "made inside the group" : "not in f32");
  }
  if (NormOf(context) == 0) {
    if (type.dtype == DType::kFloat32 || context.InputOf(node.inputs[0]) >= 0) return OkStatus();
    return Err(StatusCode::kUnimplemented, "{}: a constant in {}", Info(node.op).name,
               type.ToString());
  }
  const ChainBefore before(context);
  GroupContext without = before.context();
  without.constants = nullptr;
  return MakeChainParts(without).status();
}

StatusOr<std::vector<std::string>> LayerNormNames(const GroupContext& context) {
  AG_TRY(CheckLayerNorm(context));
  return std::vector<std::string>{"rows"};
}

StatusOr<std::unique_ptr<Kernel>> MakeLayerNorm(const GroupContext& context, const std::string&,
                                                size_t* done) {
  AG_TRY(CheckLayerNorm(context));
  *done = NormOf(context) + 1;
  auto kernel = std::make_unique<LayerNorm>();
  AG_TRY(kernel->Prepare(context));
  return kernel;
}

}  // namespace

const Family kLayerNormFamily = {LayerNormNames, MakeLayerNorm};

}  // namespace ag::cpu
