// Gather: picks rows of one tensor by the indices in another.
#include <algorithm>
#include <optional>

#include "device/cpu/kernel.h"
#include "device/cpu/parallel.h"

namespace ag::cpu {
namespace {

// Picks rows of `data` by indices, which count from the end when negative.
class Gather : public Kernel {
 public:
  Status Prepare(const GroupContext& context) {
    const Node& node = context.node(0);
    const TensorType& data = context.graph.type(node.inputs[0]);
    const TensorType& indices = context.graph.type(node.inputs[1]);
    const size_t axis = node.Int("axis");
    cores_ = context.cores;
    outer_ = NumElements(std::span(data.shape).first(axis));
    size_ = data.shape[axis];
    row_bytes_ = NumElements(std::span(data.shape).subspan(axis + 1)) * SizeOf(data.dtype);
    count_ = indices.NumElements();
    wide_ = indices.dtype == DType::kInt64;
    for (int i = 0; i < 2; ++i) {
      ports_[i] = context.InputOf(node.inputs[i]);
      if (ports_[i] >= 0 || context.constants == nullptr) continue;
      AG_LET(held_[i], context.constants->Get(node.inputs[i]));
    }
    for (const Port& port : context.group.inputs) {
      if (port.layout == Layout::kPlain) continue;
      return Err(StatusCode::kUnimplemented, "Gather: layout {}", LayoutName(port.layout));
    }
    return OkStatus();
  }

  Status Run(const RunContext&, Inputs inputs, Outputs outputs) override {
    const auto* data = static_cast<const std::byte*>(Operand(inputs, 0));
    const void* indices = Operand(inputs, 1);
    auto* out = static_cast<std::byte*>(outputs[0]);
    const int64_t grain = std::max<int64_t>(kLightGrain * 4 / std::max<int64_t>(row_bytes_, 1), 1);
    if (const std::optional<int64_t> index = Outside(indices)) {
      return Err(StatusCode::kInvalidArgument, "Gather: index {0} is outside [-{1}, {1})", *index,
                 size_);
    }
    ParallelFor(cores_, outer_ * count_, grain, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t index = At(indices, i % count_);
        if (index < 0) index += size_;
        const std::byte* row = data + (i / count_ * size_ + index) * row_bytes_;
        std::copy_n(row, row_bytes_, out + i * row_bytes_);
      }
    });
    return OkStatus();
  }

 private:
  const void* Operand(Inputs inputs, int i) const {
    return ports_[i] >= 0 ? inputs[ports_[i]] : held_[i].bytes().data();
  }
  int64_t At(const void* indices, int64_t i) const {
    return wide_ ? static_cast<const int64_t*>(indices)[i]
                 : static_cast<const int32_t*>(indices)[i];
  }
  std::optional<int64_t> Outside(const void* indices) const {
    for (int64_t i = 0; i < count_; ++i) {
      if (At(indices, i) < -size_ || At(indices, i) >= size_) return At(indices, i);
    }
    return std::nullopt;
  }

  int cores_ = 1;
  int64_t outer_ = 0, size_ = 0, row_bytes_ = 0, count_ = 0;
  bool wide_ = true;
  int ports_[2] = {-1, -1};
  Tensor held_[2];
};

StatusOr<std::vector<std::string>> GatherNames(const GroupContext& context) {
  AG_TRY(Gather().Prepare({context.graph, context.group, context.cores, nullptr}));
  return std::vector<std::string>{"copy"};
}

StatusOr<std::unique_ptr<Kernel>> MakeGather(const GroupContext& context, const std::string&,
                                             size_t* done) {
  *done = 1;
  auto kernel = std::make_unique<Gather>();
  AG_TRY(kernel->Prepare(context));
  return kernel;
}

}  // namespace

const Family kGatherFamily = {GatherNames, MakeGather};

}  // namespace ag::cpu
