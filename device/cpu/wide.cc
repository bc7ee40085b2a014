#include "device/cpu/wide.h"

#include <algorithm>

#include "device/cpu/half_loops.h"
#include "device/cpu/parallel.h"

namespace ag::cpu {
namespace {

TensorType WideType(TensorType type) {
  if (IsHalf(type.dtype)) type.dtype = DType::kFloat32;
  return type;
}

// Returns true when the results are among the values that the operator reads, or zero, or their
// negatives: 16-bit values again without rounding.
bool SelectsValues(OpKind op) {
  constexpr OpKind kOthers[] = {OpKind::kRelu,    OpKind::kNeg,      OpKind::kAbs,
                                OpKind::kMax,     OpKind::kMin,      OpKind::kWhere,
                                OpKind::kMaxPool, OpKind::kReduceMax};
  return (Has(op, kMovement) && op != OpKind::kPad) || std::ranges::count(kOthers, op) > 0;
}

// What is to be done to a 16-bit port, before the kernel runs or after it.
enum class Conversion : uint8_t {
  kWiden,   // From 16 bits in the one memory to f32 in the other.
  kNarrow,  // The other way round.
  kStore,   // The same by StoreAsBf16: under precision bf16.
  kRound,   // In f32, in place.
};

struct ConvertedPort {
  size_t index = 0;
  Conversion conversion = Conversion::kRound;
  DType dtype = DType::kFloat16;
  int64_t elements = 0;  // With the padding of blocked layouts.
  size_t offset = 0;     // Of the kernel's memory in the scratch memory, in bytes.
};

void Convert(const ConvertedPort& port, int cores, const void* from, void* to) {
  ParallelFor(cores, port.elements, kLightGrain, [&](int64_t begin, int64_t end, int) {
    const int64_t n = end - begin;
    if (port.conversion == Conversion::kWiden) {
      WidenHalf(port.dtype, static_cast<const uint16_t*>(from) + begin,
                static_cast<float*>(to) + begin, n);
    } else if (port.conversion == Conversion::kStore) {
      StoreAsBf16(static_cast<const float*>(from) + begin, static_cast<uint16_t*>(to) + begin, n);
    } else if (port.conversion == Conversion::kNarrow) {
      NarrowToHalf(port.dtype, static_cast<const float*>(from) + begin,
                   static_cast<uint16_t*>(to) + begin, n);
    } else {
      RoundToHalf(port.dtype, static_cast<const float*>(from) + begin,
                  static_cast<float*>(to) + begin, n);
    }
  });
}

class ConvertingKernel : public Kernel {
 public:
  ConvertingKernel(const GroupContext& context, std::unique_ptr<Kernel> kernel, bool is_wide)
      : graph_(&context.graph), cores_(context.cores), kernel_(std::move(kernel)) {
    const Group& group = context.group;
    const FloatPorts floats = context.floats == nullptr ? FloatPorts() : *context.floats;
    for (size_t i = 0; i < group.inputs.size(); ++i) {
      const bool is_float = !floats.inputs.empty() && floats.inputs[i];
      if (is_float == is_wide) continue;
      Add(is_wide ? Conversion::kWiden : Conversion::kNarrow, group.inputs[i], i, &inputs_);
    }
    const auto selects = [&](NodeId id) { return SelectsValues(context.graph.node(id).op); };
    const bool is_exact = kernel_->rounds() || std::ranges::all_of(group.nodes, selects);
    for (size_t i = 0; i < group.outputs.size(); ++i) {
      const bool is_float = !floats.outputs.empty() && floats.outputs[i];
      if (is_float != is_wide) {
        const DType dtype = context.graph.type(group.outputs[i].edge).dtype;
        const bool stores = context.stores_bf16 && dtype == DType::kBFloat16;
        const Conversion narrow = stores ? Conversion::kStore : Conversion::kNarrow;
        Add(is_wide ? narrow : Conversion::kWiden, group.outputs[i], i, &outputs_);
      } else if (is_wide && !is_exact && !context.stores_bf16) {
        Add(Conversion::kRound, group.outputs[i], i, &outputs_);
      }
    }
    in_.resize(group.inputs.size());
    out_.resize(group.outputs.size());
    graph_ = nullptr;
  }

  bool is_needed() const { return !inputs_.empty() || !outputs_.empty(); }
  std::unique_ptr<Kernel> TakeInner() { return std::move(kernel_); }

  Status Run(const RunContext& context, Inputs inputs, Outputs outputs) override {
    std::ranges::copy(inputs, in_.begin());
    for (const ConvertedPort& port : inputs_) {
      void* const own = context.scratch + port.offset;
      Convert(port, cores_, inputs[port.index], own);
      in_[port.index] = own;
    }
    Outputs written = outputs;
    if (!outputs_.empty()) {
      std::ranges::copy(outputs, out_.begin());
      written = out_;
    }
    for (const ConvertedPort& port : outputs_) {
      if (port.conversion == Conversion::kRound) continue;
      out_[port.index] = context.scratch + port.offset;
    }
    AG_TRY(kernel_->Run({context.stream, context.scratch + own_bytes_}, in_, written));
    for (const ConvertedPort& port : outputs_) {
      Convert(port, cores_, out_[port.index], outputs[port.index]);
    }
    return OkStatus();
  }

  size_t scratch_bytes() const override { return own_bytes_ + kernel_->scratch_bytes(); }

 private:
  // Adds a port that is of 16 bits in the graph.
  void Add(Conversion conversion, const Port& port, size_t index,
           std::vector<ConvertedPort>* ports) {
    const TensorType& type = graph_->type(port.edge);
    if (!IsHalf(type.dtype)) return;
    const auto bytes = static_cast<size_t>(LayoutBytes(WideType(type), port.layout));
    ports->push_back(
        {index, conversion, type.dtype, static_cast<int64_t>(bytes / sizeof(float)), own_bytes_});
    if (conversion != Conversion::kRound) own_bytes_ += AlignUp(bytes);
  }

  const Graph* graph_;  // While it is made.
  int cores_ = 1;
  size_t own_bytes_ = 0;
  std::unique_ptr<Kernel> kernel_;
  std::vector<ConvertedPort> inputs_, outputs_;
  std::vector<const void*> in_;
  std::vector<void*> out_;
};

}  // namespace

bool CanWiden(const GroupContext& context) {
  if (context.wide == nullptr) return false;
  const auto is_half = [&](Edge e) { return IsHalf(context.graph.type(e).dtype); };
  const auto is_half_port = [&](const Port& port) { return is_half(port.edge); };
  bool has_half = std::ranges::any_of(context.group.inputs, is_half_port) ||
                  std::ranges::any_of(context.group.outputs, is_half_port);
  for (const NodeId id : context.group.nodes) {
    const Node& node = context.graph.node(id);
    has_half =
        has_half || IsHalf(node.outputs[0].dtype) || std::ranges::any_of(node.inputs, is_half);
  }
  return has_half;
}

Widened::Widened(const GroupContext& context)
    : context_{.graph = context.wide->graph(),
               .group = context.group,
               .cores = context.cores,
               .constants = context.wide->constants(),
               .packed = context.packed,
               .prefers_held_weights = context.prefers_held_weights} {
  if (context.stores_bf16) return;
  for (const Port& port : context.group.outputs) {
    rounding_.push_back(context.graph.type(port.edge).dtype);
  }
  context_.rounding = rounding_;
}

std::unique_ptr<Kernel> WithConversions(const GroupContext& context, std::unique_ptr<Kernel> kernel,
                                        bool is_wide) {
  auto converting = std::make_unique<ConvertingKernel>(context, std::move(kernel), is_wide);
  if (converting->is_needed()) return converting;
  return converting->TakeInner();
}

}  // namespace ag::cpu
