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

Tensor WideTensor(const Tensor& tensor) {
  Tensor wide = Tensor::Zeros(WideType(tensor.type()));
  WidenHalf(tensor.type().dtype, tensor.As<uint16_t>().data(), wide.Mutable<float>().data(),
            tensor.type().NumElements());
  return wide;
}

bool HasHalf(const Graph& graph) {
  for (NodeId id = 0; id < graph.size(); ++id) {
    const auto& outputs = graph.node(id).outputs;
    if (std::ranges::any_of(outputs, [](const TensorType& t) { return IsHalf(t.dtype); })) {
      return true;
    }
  }
  return false;
}

// A 16-bit port: its place in the scratch memory, as floats.
struct HalfPort {
  size_t index = 0;
  DType dtype = DType::kFloat16;
  int64_t elements = 0;  // With the padding of blocked layouts.
  size_t offset = 0;     // Bytes.
};

class WideKernel : public Kernel {
 public:
  WideKernel(const GroupContext& context, std::unique_ptr<Kernel> kernel)
      : cores_(context.cores), kernel_(std::move(kernel)) {
    const Group& group = context.group;
    inputs_ = PortsOf(context.graph, group.inputs);
    outputs_ = PortsOf(context.graph, group.outputs);
    in_.resize(group.inputs.size());
    out_.resize(group.outputs.size());
  }

  Status Run(const RunContext& context, Inputs inputs, Outputs outputs) override {
    std::ranges::copy(inputs, in_.begin());
    std::ranges::copy(outputs, out_.begin());
    for (const HalfPort& port : inputs_) {
      auto* const wide = reinterpret_cast<float*>(context.scratch + port.offset);
      const auto* const half = static_cast<const uint16_t*>(inputs[port.index]);
      ParallelFor(cores_, port.elements, kLightGrain, [&](int64_t begin, int64_t end, int) {
        WidenHalf(port.dtype, half + begin, wide + begin, end - begin);
      });
      in_[port.index] = wide;
    }
    for (const HalfPort& port : outputs_) out_[port.index] = context.scratch + port.offset;
    AG_TRY(kernel_->Run({context.stream, context.scratch + own_bytes_}, in_, out_));
    for (const HalfPort& port : outputs_) {
      const auto* const wide = reinterpret_cast<const float*>(context.scratch + port.offset);
      auto* const half = static_cast<uint16_t*>(outputs[port.index]);
      ParallelFor(cores_, port.elements, kLightGrain, [&](int64_t begin, int64_t end, int) {
        NarrowToHalf(port.dtype, wide + begin, half + begin, end - begin);
      });
    }
    return OkStatus();
  }

  size_t scratch_bytes() const override { return own_bytes_ + kernel_->scratch_bytes(); }

 private:
  std::vector<HalfPort> PortsOf(const Graph& graph, const std::vector<Port>& ports) {
    std::vector<HalfPort> half;
    for (size_t i = 0; i < ports.size(); ++i) {
      const TensorType& type = graph.type(ports[i].edge);
      if (!IsHalf(type.dtype)) continue;
      const auto bytes = static_cast<size_t>(LayoutBytes(WideType(type), ports[i].layout));
      half.push_back({i, type.dtype, static_cast<int64_t>(bytes / sizeof(float)), own_bytes_});
      own_bytes_ += AlignUp(bytes);
    }
    return half;
  }

  int cores_ = 1;
  size_t own_bytes_ = 0;
  std::unique_ptr<Kernel> kernel_;
  std::vector<HalfPort> inputs_, outputs_;
  std::vector<const void*> in_;
  std::vector<void*> out_;
};

}  // namespace

// The constants of a wide graph under names of their own: one content may be f16 here and bf16
// there.
class WideGraph::Weights : public WeightSource {
 public:
  explicit Weights(const WeightSource* inner) : inner_(inner) {}

  // Returns the name of the widened constant; keeps what Get needs.
  Digest Add(const Node& node) {
    const Digest name = Sha256(fmt::format("{} widened, {}", DTypeName(node.outputs[0].dtype),
                                           node.constant->digest.Hex()));
    halves_.emplace(name, std::pair{node.constant->digest, node.outputs[0].dtype});
    if (!node.constant->inline_bytes.empty()) {
      const Tensor half = Tensor::FromBytes(node.outputs[0], node.constant->inline_bytes);
      inline_.insert_or_assign(name, WideTensor(half));
    }
    return name;
  }

  StatusOr<Tensor> Get(const Digest& digest, const TensorType& type) const override {
    if (const auto found = inline_.find(digest); found != inline_.end()) return found->second;
    const auto found = halves_.find(digest);
    if (found == halves_.end()) return inner_->Get(digest, type);
    AG_LET(const Tensor half, inner_->Get(found->second.first, {found->second.second, type.shape}));
    return WideTensor(half);
  }
  bool names_content() const override { return inner_->names_content(); }

  // Returns the bytes that a constant of the wide graph carries itself.
  std::string_view InlineBytes(const Digest& name) const {
    const auto found = inline_.find(name);
    return found == inline_.end() ? std::string_view() : found->second.bytes();
  }

 private:
  const WeightSource* inner_;
  std::map<Digest, std::pair<Digest, DType>> halves_;
  std::map<Digest, Tensor> inline_;
};

StatusOr<std::unique_ptr<WideGraph>> WideGraph::Of(const Graph& graph,
                                                   const WeightSource* weights) {
  if (!HasHalf(graph)) return nullptr;
  auto wide = std::make_unique<WideGraph>();
  auto source = std::make_shared<Weights>(weights);
  GraphBuilder builder;
  std::vector<NodeId> made(static_cast<size_t>(graph.size()));
  const auto edge_of = [&](Edge e) { return Edge{made[static_cast<size_t>(e.node)], e.output}; };
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const NodeId id = graph.inputs()[i];
    made[id] = builder.Input(graph.input_name(i), WideType(graph.type({id, 0}))).node;
  }
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (node.op == OpKind::kInput) continue;
    if (node.op == OpKind::kConstant && IsHalf(node.outputs[0].dtype)) {
      const Digest name = source->Add(node);
      made[id] = builder.Constant(WideType(node.outputs[0]), name, source->InlineBytes(name)).node;
      continue;
    }
    std::vector<Edge> operands;
    for (const Edge& e : node.inputs) operands.push_back(edge_of(e));
    Node copy = node;
    for (TensorType& type : copy.outputs) type = WideType(type);
    if (node.op == OpKind::kCast) {
      const auto to = static_cast<int64_t>(copy.outputs[0].dtype);
      copy.attributes = std::make_shared<const Attributes>(Attributes{{"to", to}});
    }
    AG_LET(made[id], builder.AddCopy(copy, operands));
  }
  for (const GraphOutput& output : graph.outputs())
    builder.Output(edge_of(output.edge), output.name);
  std::vector<NodeId> place;
  AG_LET(wide->graph_, builder.Build(&place));
  for (NodeId id = 0; id < graph.size(); ++id) AG_CHECK(place[made[id]] == id);
  if (weights != nullptr) {
    wide->weights_ = source;
    wide->constants_ = std::make_unique<Constants>(wide->graph_, *wide->weights_);
  }
  return wide;
}

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

GroupContext Widened(const GroupContext& context) {
  return {context.wide->graph(), context.group, context.cores, context.wide->constants(),
          context.packed};
}

StatusOr<std::unique_ptr<Kernel>> WithConversions(const GroupContext& context,
                                                  std::unique_ptr<Kernel> kernel) {
  return std::make_unique<WideKernel>(context, std::move(kernel));
}

}  // namespace ag::cpu
