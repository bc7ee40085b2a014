// Operators in ONNX's own form, by the kernels that define them: right for every type, and slow.
#include <algorithm>
#include <cstring>

#include "device/cpu/kept.h"
#include "graph/onnx/node_attributes.h"

namespace ag::cpu {
namespace {

class Kept : public Kernel {
 public:
  explicit Kept(KeptOperator kept) : kept_(std::move(kept)) {}

  Status Prepare(const GroupContext& context) {
    const Node& node = context.node(0);
    cores_ = context.cores;
    for (const Edge& edge : node.inputs) {
      Operand operand{.type = context.graph.type(edge), .port = context.InputOf(edge)};
      if (operand.port < 0 && context.constants != nullptr) {
        AG_LET(operand.held, context.constants->Get(edge));
      }
      operands_.push_back(std::move(operand));
    }
    for (const Port& port : context.group.outputs) outputs_.push_back(port.edge.output);
    return OkStatus();
  }

  Status Run(const RunContext&, Inputs inputs, Outputs outputs) override {
    std::vector<Tensor> operands;
    for (const Operand& operand : operands_) {
      const auto bytes = static_cast<size_t>(operand.type.Bytes());
      operands.push_back(operand.port < 0
                             ? operand.held
                             : Tensor::View(operand.type,
                                            {static_cast<const char*>(inputs[operand.port]), bytes},
                                            nullptr));
    }
    AG_LET(const std::vector<Tensor> results, kept_.Run(operands, cores_));
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const std::string_view bytes = results[static_cast<size_t>(outputs_[i])].bytes();
      if (!bytes.empty()) std::memcpy(outputs[i], bytes.data(), bytes.size());
    }
    return OkStatus();
  }

 private:
  struct Operand {
    TensorType type;
    int port = -1;  // -1: `held`.
    Tensor held;
  };
  KeptOperator kept_;
  int cores_ = 1;
  std::vector<Operand> operands_;
  std::vector<int32_t> outputs_;  // Of the node, by output port.
};

using MakeFastKernel = StatusOr<std::unique_ptr<Kernel>> (*)(const GroupContext& context,
                                                             const KeptOperator& kept);

// A kernel that is faster than the reference kernel, for some forms of an operator.
struct FastKernel {
  std::string_view op, name;
  MakeFastKernel make;
};

// Best guesses first.
constexpr FastKernel kFastKernels[] = {
    {"LSTM", "loops", MakeRecurrent},
    {"GRU", "loops", MakeRecurrent},
    {"RNN", "loops", MakeRecurrent},
    {"com.microsoft.DynamicQuantizeLSTM", "loops", MakeRecurrent},
    {"ConvTranspose", "tiles", MakeTransposedTiles},
    {"ConvTranspose", "onednn", MakeTransposed},
    {"Conv", "winograd_tiles", MakeKeptWinograd},
    {"Conv", "onednn", MakeKeptConvolution},
    {"MaxPool", "loops", MakeKeptPool},
    {"AveragePool", "loops", MakeKeptPool},
    {"InstanceNormalization", "rows", MakeNorm},
    {"GroupNormalization", "rows", MakeNorm},
    {"LRN", "blocks", MakeLrn},
    {"LpNormalization", "lines", MakeLpNorm},
    {"TopK", "lines", MakeTopK},
    {"ArgMax", "lines", MakeArg},
    {"ArgMin", "lines", MakeArg},
    {"CumSum", "lines", MakeCumSum},
    {"GatherElements", "rows", MakeGatherElements},
    {"GatherND", "rows", MakeGatherNd},
    {"ScatterElements", "rows", MakeScatterElements},
    {"Scatter", "rows", MakeScatterElements},
    {"ScatterND", "rows", MakeScatterNd},
    {"Trilu", "rows", MakeTrilu},
    {"GridSample", "tiles", MakeGridSample},
    {"QuantizeLinear", "loops", MakeQuantize},
    {"DequantizeLinear", "loops", MakeQuantize},
    {"DynamicQuantizeLinear", "loops", MakeDynamicQuantize},
    {"MatMulInteger", "onednn", MakeIntegerProduct},
    {"QLinearMatMul", "onednn", MakeIntegerProduct},
    {"MatMulInteger", "batched", MakeByteProduct},
    {"QLinearMatMul", "batched", MakeByteProduct},
    {"ConvInteger", "onednn", MakeIntegerProduct},
    {"QLinearConv", "onednn", MakeIntegerProduct},
    {"com.microsoft.QGemm", "onednn", MakeIntegerProduct},
    {"com.microsoft.QLinearAdd", "blocks", MakeByteSum},
    {"com.microsoft.QLinearMul", "blocks", MakeByteSum},
    {"com.microsoft.QLinearSigmoid", "table", MakeByteFunction},
    {"com.microsoft.QLinearLeakyRelu", "table", MakeByteFunction},
    {"com.microsoft.QLinearConcat", "table", MakeByteConcat},
    {"com.microsoft.QLinearGlobalAveragePool", "loops", MakeBytePool},
};

// Returns the operator's name, of another domain than the default one "domain.Name".
std::string NameOf(const OnnxNode& node) {
  return node.domain.empty() ? node.op_type : fmt::format("{}.{}", node.domain, node.op_type);
}

StatusOr<std::unique_ptr<Kernel>> MakeFast(const GroupContext& context, const KeptOperator& kept,
                                           std::string_view name) {
  const std::string op = NameOf(kept.node());
  for (const FastKernel& fast : kFastKernels) {
    if (op == fast.op && name == fast.name) return fast.make(context, kept);
  }
  return Err(StatusCode::kUnimplemented, "{}: no kernel {}", kept.node().op_type, name);
}

StatusOr<std::vector<std::string>> KeptNames(const GroupContext& context) {
  AG_LET(const KeptOperator kept, KeptOperator::Of(context.node(0)));
  const GroupContext check{context.graph, context.group, context.cores, nullptr, nullptr};
  const std::string op = NameOf(kept.node());
  std::vector<std::string> names;
  for (const FastKernel& fast : kFastKernels) {
    if (op == fast.op && MakeFast(check, kept, fast.name).ok()) {
      names.emplace_back(fast.name);
    }
  }
  names.emplace_back(kReferenceName);
  return names;
}

StatusOr<std::unique_ptr<Kernel>> MakeKept(const GroupContext& context, const std::string& name,
                                           size_t* done) {
  *done = 1;
  AG_LET(KeptOperator kept, KeptOperator::Of(context.node(0)));
  if (name != kReferenceName) return MakeFast(context, kept, name);
  auto kernel = std::make_unique<Kept>(std::move(kept));
  AG_TRY(kernel->Prepare(context));
  return kernel;
}

}  // namespace

Status RefuseForm(const KeptOperator& kept) {
  return Err(StatusCode::kUnimplemented, "{}: not this form", kept.node().op_type);
}

KeptOperands::KeptOperands(const GroupContext& context, const KeptOperator& kept)
    : context_(context) {
  const Node& node = context.node(0);
  size_t next = 0;
  for (const std::string& name : kept.node().inputs) {
    edges_.push_back(name.empty() || next == node.inputs.size() ? Edge{} : node.inputs[next++]);
  }
  int result = 0;
  for (const std::string& name : kept.node().outputs) {
    results_.push_back(name.empty() ? -1 : result++);
  }
}

bool KeptOperands::IsPlainFloat(std::initializer_list<size_t> but) const {
  const Node& node = context_.node(0);
  const auto is_float = [](const TensorType& type) { return type.dtype == DType::kFloat32; };
  for (size_t i = 0; i < edges_.size(); ++i) {
    if (Has(i) && std::ranges::count(but, i) == 0 && !is_float(Type(i))) return false;
  }
  return std::ranges::all_of(node.outputs, is_float) && ArePlain(context_.group);
}

bool KeptOperands::ResultIs(size_t i, const Shape& shape) const {
  if (i >= results_.size() || results_[i] < 0) return true;
  return context_.node(0).outputs[static_cast<size_t>(results_[i])].shape == shape;
}

int KeptOperands::OutputPort(size_t i) const {
  if (i >= results_.size() || results_[i] < 0) return -1;
  const auto& ports = context_.group.outputs;
  for (size_t port = 0; port < ports.size(); ++port) {
    if (ports[port].edge.output == results_[i]) return static_cast<int>(port);
  }
  return -1;
}

StatusOr<KeptOperand> KeptOperand::Of(const GroupContext& context, const KeptOperands& operands,
                                      size_t i) {
  KeptOperand operand;
  operand.type_ = context.graph.type(operands.At(i));
  operand.port_ = context.InputOf(operands.At(i));
  if (operand.port_ < 0 && context.constants != nullptr) {
    AG_LET(operand.held_, context.constants->Get(operands.At(i)));
  }
  return operand;
}

StatusOr<KeptWindow> KeptWindowOf(const KeptOperator& kept, const Shape& x, const Shape& y,
                                  const Ints& kernel) {
  NodeAttributes attributes(kept.node());
  const auto refuse = [&] {
    return Err(StatusCode::kUnimplemented, "{}: the window does not fit", kept.node().op_type);
  };
  if (x.size() < 3 || y.size() != x.size()) return refuse();
  const size_t axes = x.size() - 2;
  const auto list = [&](const char* name, size_t size, int64_t otherwise) {
    return attributes.IntList(name).value_or(Ints(size, otherwise));
  };
  KeptWindow window{.kernel = attributes.IntList("kernel_shape").value_or(kernel),
                    .strides = list("strides", axes, 1),
                    .dilations = list("dilations", axes, 1)};
  const Ints pads = list("pads", 2 * axes, 0);
  const std::string auto_pad = attributes.String("auto_pad", "NOTSET");
  if (window.kernel.size() != axes || (!kernel.empty() && window.kernel != kernel) ||
      window.strides.size() != axes || window.dilations.size() != axes || pads.size() != 2 * axes) {
    return refuse();
  }
  const bool ceil = attributes.Int("ceil_mode", 0) != 0;
  for (size_t i = 0; i < axes; ++i) {
    const int64_t stride = window.strides[i], in = x[i + 2];
    if (stride < 1 || window.dilations[i] < 1 || window.kernel[i] < 1) return refuse();
    const int64_t span = (window.kernel[i] - 1) * window.dilations[i] + 1;
    int64_t begin = 0, end = 0;
    if (auto_pad.starts_with("SAME_")) {
      const int64_t total =
          std::max<int64_t>(((in + stride - 1) / stride - 1) * stride + span - in, 0);
      begin = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      end = total - begin;
    } else if (auto_pad == "NOTSET") {
      begin = pads[i];
      end = pads[axes + i];
    } else if (auto_pad != "VALID") {
      return refuse();
    }
    const int64_t room = in + begin + end - span;
    int64_t out = (ceil ? room + stride - 1 : room) / stride + 1;
    if (ceil && (out - 1) * stride >= in + begin) --out;
    if (begin < 0 || end < 0 || room < 0 || out != y[i + 2]) return refuse();
    window.begin.push_back(begin);
    window.end.push_back(end);
  }
  return window;
}

const Family kKeptFamily = {KeptNames, MakeKept};

}  // namespace ag::cpu
