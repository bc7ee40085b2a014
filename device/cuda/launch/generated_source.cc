#include "device/cuda/launch/generated_source.h"

#include "device/cuda/codegen/generate.h"
#include "device/cuda/launch/host_form.h"

namespace ag::cuda {
namespace {

constexpr std::string_view kName = "generated";

class GeneratedKernelGroup : public GroupKernel {
 public:
  GeneratedKernelGroup(Driver& driver, GeneratedGroup group)
      : driver_(driver), group_(std::move(group)) {}

  Status Load(const GroupContext& context, Compiler& compiler, Constants& constants,
              WeightMemory& memory) {
    AG_LET(const std::string image,
           compiler.Compile(group_.source, context.chip.compute_capability));
    AG_LET(const ModuleRef module, driver_.LoadModule(image));
    module_ = OwnedModule(driver_, module);
    for (const GeneratedKernel& kernel : group_.kernels) {
      AG_LET(const FunctionRef function,
             driver_.FindFunction(module, kernel.function, kernel.shared_bytes));
      functions_.push_back(function);
    }
    for (const GeneratedConstant& constant : group_.constants) {
      AG_LET(const Tensor value, constants.Get(constant.edge));
      AG_LET(const std::byte* const held,
             memory.Put(PackTensor(value, constant.stored, constant.order, constant.padded)));
      constants_.push_back(held);
    }
    return OkStatus();
  }

  Status Enqueue(StreamRef stream, const Operands& operands, bool is_early) override {
    for (size_t i = 0; i < functions_.size(); ++i) {
      const GeneratedKernel& kernel = group_.kernels[i];
      KernelLaunch launch{functions_[i], kernel.grid, kernel.block, kernel.shared_bytes};
      for (const GeneratedArgument& argument : kernel.arguments) {
        launch.arguments.push_back(Address(argument, operands));
      }
      launch.is_early = is_early && i == 0;
      AG_TRY(driver_.Launch(launch, stream), "{}", kernel.function);
    }
    return OkStatus();
  }

  int64_t workspace_bytes() const override { return group_.workspace_bytes; }
  bool can_begin_early() const override { return group_.can_begin_early; }

 private:
  const std::byte* Address(const GeneratedArgument& argument, const Operands& operands) const {
    switch (argument.kind) {
      case GeneratedArgument::Kind::kInput:
        return operands.inputs[argument.index];
      case GeneratedArgument::Kind::kOutput:
        return operands.outputs[argument.index];
      case GeneratedArgument::Kind::kConstant:
        return constants_[argument.index];
      case GeneratedArgument::Kind::kWorkspace:
        break;
    }
    return operands.workspace + argument.offset_bytes;
  }

  Driver& driver_;
  const GeneratedGroup group_;
  OwnedModule module_;
  std::vector<FunctionRef> functions_;       // By kernel.
  std::vector<const std::byte*> constants_;  // As GeneratedGroup::constants.
};

class GeneratedSource : public KernelSource {
 public:
  GeneratedSource(Driver& driver, std::unique_ptr<Compiler> compiler)
      : driver_(driver), compiler_(std::move(compiler)) {}

  std::string_view name() const override { return kName; }

  StatusOr<std::vector<std::string>> Kernels(const GroupContext& context) override {
    AG_LET(std::vector<std::string> kernels, GeneratedVariants(context));
    for (std::string& kernel : kernels) kernel = fmt::format("{}:{}", kName, kernel);
    return kernels;
  }

  void Prepare(const GroupContext& context) override {
    const StatusOr<std::vector<std::string>> variants = GeneratedVariants(context);
    if (!variants.ok()) return;
    for (const std::string& variant : *variants) {
      const StatusOr<GeneratedGroup> group = GenerateGroup(context, variant);
      if (group.ok()) compiler_->Prepare(group->source, context.chip.compute_capability);
    }
  }

  StatusOr<std::unique_ptr<GroupKernel>> Make(const GroupContext& context,
                                              const std::string& kernel, Constants& constants,
                                              WeightMemory& memory) override {
    AG_LET(GeneratedGroup group, GenerateGroup(context, kernel.substr(kName.size() + 1)));
    auto made = std::make_unique<GeneratedKernelGroup>(driver_, std::move(group));
    AG_TRY(made->Load(context, *compiler_, constants, memory), "kernel {}", kernel);
    return made;
  }

 private:
  Driver& driver_;
  const std::unique_ptr<Compiler> compiler_;
};

}  // namespace

std::unique_ptr<KernelSource> MakeGeneratedSource(Driver& driver,
                                                  std::unique_ptr<Compiler> compiler) {
  return std::make_unique<GeneratedSource>(driver, std::move(compiler));
}

}  // namespace ag::cuda
