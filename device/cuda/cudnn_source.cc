#include "device/cuda/cudnn_source.h"

#include <cstdint>

namespace ag::cuda {
namespace {

using Kind = CudnnBinding::Kind;

constexpr size_t kOldest = 90800;  // Device properties came with 9.8.
constexpr uintptr_t kAlignment = 16;

std::string VersionText(size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

Status CheckVersion() {
  const size_t version = cudnnGetVersion();
  if (version < kOldest || version / 10000 != CUDNN_MAJOR) {
    return Err(StatusCode::kFailedPrecondition, "cuDNN {}: 9.8 or a newer 9 is needed",
               VersionText(version));
  }
  return OkStatus();
}

class CudnnKernel : public GroupKernel {
 public:
  // `constants` are the device's addresses of graph.constants.
  CudnnKernel(std::shared_ptr<CudnnHandle> handle, CudnnGraph graph, CudnnCandidate candidate,
              Descriptor plan, int64_t workspace_bytes, std::vector<const std::byte*> constants)
      : handle_(std::move(handle)),
        graph_(std::move(graph)),
        candidate_(std::move(candidate)),
        plan_(std::move(plan)),
        workspace_bytes_(workspace_bytes),
        constants_(std::move(constants)) {}

  Status Enqueue(StreamRef stream, const Operands& operands, bool) override {
    const std::string name = CudnnName(candidate_.choice);
    if (handle_ == nullptr) {
      return Err(StatusCode::kFailedPrecondition, "{}: made without a device", name);
    }
    AG_LET(const Descriptor pack, PackOf(operands));
    AG_TRY(FromCudnn(cudnnSetStream(handle_->get(), reinterpret_cast<cudaStream_t>(stream)),
                     "{}: set the stream", name));
    return FromCudnn(cudnnBackendExecute(handle_->get(), plan_.get(), pack.get()), "{}", name);
  }

  int64_t workspace_bytes() const override { return workspace_bytes_; }

 private:
  StatusOr<void*> PointerOf(const CudnnBinding& binding, const Operands& operands) {
    const void* pointer = nullptr;
    switch (binding.kind) {
      case Kind::kInput:
        pointer = operands.inputs[binding.index];
        break;
      case Kind::kOutput:
        pointer = operands.outputs[binding.index];
        break;
      case Kind::kConstant:
        pointer = constants_[binding.index];
        break;
      case Kind::kScalar:
        return const_cast<float*>(&binding.scalar);  // Read by cuDNN at once, from the host.
    }
    if (pointer == nullptr || reinterpret_cast<uintptr_t>(pointer) % kAlignment != 0) {
      return Err(StatusCode::kInvalidArgument, "{}: tensor {} at {} is not aligned to {} bytes",
                 CudnnName(candidate_.choice), binding.uid, pointer, kAlignment);
    }
    return const_cast<void*>(pointer);
  }

  StatusOr<Descriptor> PackOf(const Operands& operands) {
    std::vector<int64_t> uids;
    std::vector<void*> pointers;
    for (const CudnnBinding& binding : graph_.bindings) {
      AG_LET(void* pointer, PointerOf(binding, operands));
      uids.push_back(binding.uid);
      pointers.push_back(pointer);
    }
    if (workspace_bytes_ > 0 && operands.workspace == nullptr) {
      return Err(StatusCode::kInvalidArgument, "{}: no workspace, {} bytes are needed",
                 CudnnName(candidate_.choice), workspace_bytes_);
    }
    return DescriptorBuilder(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "variant pack")
        .SetAll(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, uids)
        .SetPointers(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, pointers)
        .SetPointers(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, {operands.workspace})
        .Finish();
  }

  // In the order of their making: what is later refers to what is earlier.
  std::shared_ptr<CudnnHandle> handle_;
  CudnnGraph graph_;
  CudnnCandidate candidate_;
  Descriptor plan_;
  int64_t workspace_bytes_;
  std::vector<const std::byte*> constants_;
};

StatusOr<Descriptor> BuildPlan(const CudnnCandidate& candidate, const DeviceProperties& device) {
  return DescriptorBuilder(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
                           CudnnName(candidate.choice) + ": plan")
      .Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, candidate.config)
      .Set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device.descriptor())
      .Finish();
}

}  // namespace

std::string CudnnSource::LibraryVersion() { return VersionText(cudnnGetVersion()); }

StatusOr<std::unique_ptr<CudnnSource>> CudnnSource::Open() {
  AG_TRY(CheckVersion());
  auto handle = std::make_shared<CudnnHandle>();
  AG_TRY(FromCudnn(cudnnCreate(handle->out()), "open cuDNN {}", LibraryVersion()));
  AG_LET(DeviceProperties device, DeviceProperties::OfHandle(handle->get()));
  return std::unique_ptr<CudnnSource>(new CudnnSource(std::move(handle), std::move(device)));
}

StatusOr<std::unique_ptr<CudnnSource>> CudnnSource::Deviceless(std::string_view properties) {
  AG_TRY(CheckVersion());
  AG_LET(DeviceProperties device, DeviceProperties::FromJson(properties));
  return std::unique_ptr<CudnnSource>(new CudnnSource(nullptr, std::move(device)));
}

StatusOr<std::vector<std::string>> CudnnSource::Kernels(const GroupContext& context) {
  AG_LET(const CudnnGraph graph, BuildCudnnGraph(context));
  AG_LET(const std::vector<CudnnCandidate> candidates,
         CudnnCandidates(graph, device_, context.precision, context.chip));
  std::vector<std::string> names;
  for (const CudnnCandidate& candidate : candidates) names.push_back(CudnnName(candidate.choice));
  return names;
}

StatusOr<std::unique_ptr<GroupKernel>> CudnnSource::Make(const GroupContext& context,
                                                         const std::string& kernel,
                                                         Constants& constants,
                                                         WeightMemory& memory) {
  AG_LET(const CudnnChoice choice, ParseCudnnName(kernel));
  AG_LET(CudnnGraph graph, BuildCudnnGraph(context));
  AG_LET(CudnnCandidate candidate, FindCudnnCandidate(graph, device_, context.precision, choice));
  StatusOr<Descriptor> built = BuildPlan(candidate, device_);
  if (!built.ok() && built.status().code() != StatusCode::kResourceExhausted) {
    // A kernel that does not compile or load: others may.
    return Err(StatusCode::kUnimplemented, "{}", Message(built.status()));
  }
  AG_TRY(built);
  Descriptor plan = *std::move(built);
  AG_LET(const int64_t workspace, plan.Get<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
  std::vector<const std::byte*> addresses;
  for (const ConstantRecipe& recipe : graph.constants) {
    AG_LET(const std::vector<std::byte> bytes, PackConstant(recipe, constants));
    AG_LET(const std::byte* address, memory.Put(bytes));
    addresses.push_back(address);
  }
  return std::make_unique<CudnnKernel>(handle_, std::move(graph), std::move(candidate),
                                       std::move(plan), workspace, std::move(addresses));
}

}  // namespace ag::cuda
