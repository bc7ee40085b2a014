// Operators in ONNX's own form, by the kernels that define them: right for every type, and slow.
#include <cstring>

#include "device/cpu/kernel.h"
#include "graph/onnx/operators/operators.h"

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
      operands.push_back(
          operand.port < 0
              ? operand.held
              : Tensor::View(operand.type, {static_cast<const char*>(inputs[operand.port]), bytes},
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

StatusOr<std::vector<std::string>> KeptNames(const GroupContext& context) {
  AG_TRY(KeptOperator::Of(context.node(0)));
  return std::vector<std::string>{"reference"};
}

StatusOr<std::unique_ptr<Kernel>> MakeKept(const GroupContext& context, const std::string&,
                                           size_t* done) {
  *done = 1;
  AG_LET(KeptOperator kept, KeptOperator::Of(context.node(0)));
  auto kernel = std::make_unique<Kept>(std::move(kept));
  AG_TRY(kernel->Prepare(context));
  return kernel;
}

}  // namespace

const Family kKeptFamily = {KeptNames, MakeKept};

}  // namespace ag::cpu
