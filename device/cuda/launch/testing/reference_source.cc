#include "device/cuda/launch/testing/reference_source.h"

#include <algorithm>

#include "device/cuda/launch/host_form.h"
#include "graph/reference/evaluate.h"

namespace ag::cuda {
namespace {

constexpr int64_t kWorkspaceBytes = 1000;  // Not a multiple of any alignment.

// Computes the node alone, with its operands as inputs.
StatusOr<std::vector<Tensor>> Compute(const Node& node, const std::vector<Tensor>& operands) {
  GraphBuilder builder;
  std::vector<Edge> edges;
  for (size_t i = 0; i < operands.size(); ++i) {
    edges.push_back(builder.Input(fmt::format("i{}", i), operands[i].type()));
  }
  AG_LET(const NodeId id, builder.Add(node.op, edges, *node.attributes));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    builder.Output({id, static_cast<int32_t>(i)}, fmt::format("o{}", i));
  }
  AG_LET(const Graph graph, builder.Build());
  return Evaluate(graph, operands, MemoryWeights());
}

// Rounds the tensor's values to the stored type.
void Round(Precision precision, Tensor* tensor) {
  if (StoredDType(tensor->type().dtype, precision) == tensor->type().dtype) return;
  const std::vector<std::byte> bytes = ToDeviceForm(*tensor, Layout::kPlain, precision);
  Tensor rounded = Tensor::Zeros(tensor->type());
  FromDeviceForm(bytes, Layout::kPlain, precision, &rounded);
  *tensor = rounded;
}

class ReferenceKernel : public GroupKernel {
 public:
  ReferenceKernel(Driver& driver, const GroupContext& context, bool can_begin_early)
      : driver_(driver),
        graph_(context.graph),
        group_(context.group),
        precision_(context.precision),
        can_begin_early_(can_begin_early) {}

  Status Load(HostFunctions functions, Constants& constants) {
    AG_LET(const ModuleRef module, driver_.LoadModule("reference"));
    module_ = OwnedModule(driver_, module);
    const std::string name = fmt::format("k{}", functions->size());
    (*functions)[name + "_mark"] = [this](const KernelLaunch& launch) { return Mark(launch); };
    (*functions)[name] = [this](const KernelLaunch& launch) { return RunGroup(launch); };
    AG_LET(mark_, driver_.FindFunction(module, name + "_mark", 0));
    AG_LET(run_, driver_.FindFunction(module, name, 0));
    for (const NodeId id : group_.nodes) {
      for (const Edge edge : graph_.node(id).inputs) {
        if (!graph_.is_constant(edge.node)) continue;
        AG_LET(values_[edge], constants.Get(edge));
      }
    }
    if (group_.nodes.empty() && group_.inputs.empty()) {  // The copy of a constant.
      AG_LET(values_[group_.outputs[0].edge], constants.Get(group_.outputs[0].edge));
    }
    return OkStatus();
  }

  Status Enqueue(StreamRef stream, const Operands& operands, bool is_early) override {
    KernelLaunch launch{mark_};
    launch.arguments.assign(operands.inputs.begin(), operands.inputs.end());
    launch.arguments.insert(launch.arguments.end(), operands.outputs.begin(),
                            operands.outputs.end());
    launch.arguments.push_back(operands.workspace);
    launch.is_early = is_early;
    AG_TRY(driver_.Launch(launch, stream));
    launch.function = run_;
    launch.is_early = false;
    launch.grid[0] = static_cast<uint32_t>(Blocks());
    return driver_.Launch(launch, stream);
  }

  int64_t workspace_bytes() const override { return kWorkspaceBytes; }
  bool can_begin_early() const override { return can_begin_early_; }

 private:
  // Returns a plausible number of blocks: one for each 16 elements of the largest output.
  int64_t Blocks() const {
    int64_t blocks = 1;
    for (const Port& port : group_.outputs) {
      blocks = std::max(blocks, (graph_.type(port.edge).NumElements() + 15) / 16);
    }
    return blocks;
  }
  size_t output_count(const KernelLaunch& launch) const {
    return launch.arguments.size() - group_.inputs.size() - 1;
  }
  std::byte* Output(const KernelLaunch& launch, size_t i) const {
    const void* at = launch.arguments[group_.inputs.size() + i];
    return static_cast<std::byte*>(const_cast<void*>(at));
  }
  std::span<std::byte> Workspace(const KernelLaunch& launch) const {
    return {static_cast<std::byte*>(const_cast<void*>(launch.arguments.back())), kWorkspaceBytes};
  }
  TensorType StoredTypeOf(Edge edge) const {
    const TensorType& type = graph_.type(edge);
    return {StoredDType(type.dtype, precision_), type.shape};
  }

  int64_t BytesOf(const Port& port) const {
    return LayoutBytes(StoredTypeOf(port.edge), port.layout);
  }

  Status Mark(const KernelLaunch& launch) {
    const auto mark = static_cast<std::byte>(group_.outputs[0].edge.node % 251);
    std::ranges::fill(Workspace(launch), mark);
    for (size_t i = 0; i < output_count(launch) && !IsCopy(group_); ++i) {
      std::fill_n(Output(launch, i), BytesOf(group_.outputs[i]), std::byte{0xFF});
    }
    return OkStatus();
  }

  Status RunGroup(const KernelLaunch& launch) {
    const auto mark = static_cast<std::byte>(group_.outputs[0].edge.node % 251);
    for (const std::byte byte : Workspace(launch)) {
      if (byte == mark) continue;
      return Err(StatusCode::kDataLoss, "another group wrote to the workspace");
    }
    std::map<Edge, Tensor> values = values_;
    for (size_t i = 0; i < group_.inputs.size(); ++i) {
      const Port& port = group_.inputs[i];
      Tensor tensor = Tensor::Zeros(graph_.type(port.edge));
      const std::span<const std::byte> bytes(static_cast<const std::byte*>(launch.arguments[i]),
                                             static_cast<size_t>(BytesOf(port)));
      if (!HasZeroPadding(bytes, StoredTypeOf(port.edge), port.layout)) {
        return Err(StatusCode::kDataLoss, "input {}: padding is not zero", i);
      }
      FromDeviceForm(bytes, port.layout, precision_, &tensor);
      values[port.edge] = std::move(tensor);
    }
    for (const NodeId id : group_.nodes) {
      const Node& node = graph_.node(id);
      std::vector<Tensor> operands;
      for (const Edge edge : node.inputs) operands.push_back(values.at(edge));
      AG_LET(std::vector<Tensor> results, Compute(node, operands));
      for (size_t i = 0; i < results.size(); ++i) {
        Round(precision_, &results[i]);
        values[{id, static_cast<int32_t>(i)}] = std::move(results[i]);
      }
    }
    for (size_t i = 0; i < output_count(launch); ++i) {
      const Port& port = group_.outputs[IsCopy(group_) ? 0 : i];
      std::ranges::copy(ToDeviceForm(values.at(port.edge), port.layout, precision_),
                        Output(launch, i));
    }
    return OkStatus();
  }

  Driver& driver_;
  const Graph graph_;  // Copies share the nodes.
  const Group group_;
  const Precision precision_;
  const bool can_begin_early_;
  OwnedModule module_;
  FunctionRef mark_ = nullptr, run_ = nullptr;
  std::map<Edge, Tensor> values_;  // Of constants.
};

class ReferenceSource : public KernelSource {
 public:
  ReferenceSource(Driver& driver, HostFunctions functions)
      : driver_(driver), functions_(std::move(functions)) {}

  std::string_view name() const override { return "reference"; }
  StatusOr<std::vector<std::string>> Kernels(const GroupContext& context) override {
    for (const Port& port : context.group.outputs) {
      if (BlockOf(port.layout) == 1) continue;
      return Err(StatusCode::kUnimplemented, "layout {}", LayoutName(port.layout));
    }
    return std::vector<std::string>{"reference:plain", "reference:early"};
  }
  StatusOr<std::unique_ptr<GroupKernel>> Make(const GroupContext& context,
                                              const std::string& kernel, Constants& constants,
                                              WeightMemory&) override {
    auto made = std::make_unique<ReferenceKernel>(driver_, context, kernel == "reference:early");
    AG_TRY(made->Load(functions_, constants));
    return made;
  }

 private:
  Driver& driver_;
  HostFunctions functions_;
};

}  // namespace

std::function<StatusOr<HostDriver::Function>(const std::string&, const std::string&)> FindIn(
    HostFunctions functions) {
  return [functions = std::move(functions)](
             const std::string& image, const std::string& name) -> StatusOr<HostDriver::Function> {
    const auto found = functions->find(name);
    if (found != functions->end()) return found->second;
    return Err(StatusCode::kNotFound, "{}: no function '{}'", image, name);
  };
}

std::unique_ptr<KernelSource> MakeReferenceSource(Driver& driver, HostFunctions functions) {
  return std::make_unique<ReferenceSource>(driver, std::move(functions));
}

}  // namespace ag::cuda
