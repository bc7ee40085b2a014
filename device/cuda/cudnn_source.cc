#include "device/cuda/cudnn_source.h"

#include <algorithm>
#include <cstdint>

#include "base/log.h"
#include "device/cuda/cuda_status.h"

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
  // `constants` are the device addresses of the graph's constants.
  CudnnKernel(std::shared_ptr<CudnnHandle> handle, std::vector<CudnnBinding> bindings,
              std::shared_ptr<const CudnnSource::CudnnPlan> plan,
              std::vector<const std::byte*> constants)
      : handle_(std::move(handle)),
        bindings_(std::move(bindings)),
        plan_(std::move(plan)),
        constants_(std::move(constants)) {}

  Status Enqueue(StreamRef stream, const Operands& operands, bool) override {
    const std::string name = Name();
    if (handle_ == nullptr) {
      return Err(StatusCode::kFailedPrecondition, "{}: made without a device", name);
    }
    AG_LET(const Descriptor pack, PackOf(operands));
    AG_TRY(FromCudnn(cudnnSetStream(handle_->get(), reinterpret_cast<cudaStream_t>(stream)),
                     "{}: set the stream", name));
    return FromCudnn(cudnnBackendExecute(handle_->get(), plan_->plan.get(), pack.get()), "{}",
                     name);
  }

  int64_t workspace_bytes() const override { return plan_->workspace_bytes; }

 private:
  std::string Name() const { return CudnnName(plan_->candidate.choice); }

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
        return const_cast<float*>(&binding.scalar);  // cuDNN reads it at once, from the host.
    }
    if (pointer == nullptr || reinterpret_cast<uintptr_t>(pointer) % kAlignment != 0) {
      return Err(StatusCode::kInvalidArgument, "{}: tensor {} at {} is not aligned to {} bytes",
                 Name(), binding.uid, pointer, kAlignment);
    }
    return const_cast<void*>(pointer);
  }

  StatusOr<Descriptor> PackOf(const Operands& operands) {
    std::vector<int64_t> uids;
    std::vector<void*> pointers;
    for (const CudnnBinding& binding : bindings_) {
      AG_LET(void* pointer, PointerOf(binding, operands));
      uids.push_back(binding.uid);
      pointers.push_back(pointer);
    }
    if (workspace_bytes() > 0 && operands.workspace == nullptr) {
      return Err(StatusCode::kInvalidArgument, "{}: no workspace, {} bytes are needed", Name(),
                 workspace_bytes());
    }
    return DescriptorBuilder(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "variant pack")
        .SetAll(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, uids)
        .SetPointers(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, pointers)
        .SetPointers(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, {operands.workspace})
        .Finish();
  }

  std::shared_ptr<CudnnHandle> handle_;
  std::vector<CudnnBinding> bindings_;                  // Those of plan_ except the ports.
  std::shared_ptr<const CudnnSource::CudnnPlan> plan_;  // Of this graph, or of an equal one.
  std::vector<const std::byte*> constants_;
};

StatusOr<Descriptor> BuildPlan(const CudnnCandidate& candidate, const DeviceProperties& device) {
  return DescriptorBuilder(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
                           CudnnName(candidate.choice) + ": plan")
      .Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, candidate.config)
      .Set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device.descriptor())
      .Finish();
}

// Returns the plan of a JSON text.
StatusOr<Descriptor> ReadPlan(std::string_view text, const DeviceProperties& device) {
  return DescriptorBuilder(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "kept plan")
      .Set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device.descriptor())
      .SetText(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, text)
      .Finish();
}

// Returns a function that makes the calling thread's device the current one of another thread.
std::function<void()> UseThisDevice() {
  int ordinal = 0;
  const Status status = FromCuda(cudaGetDevice(&ordinal), "ask for the device");
  return [ordinal, status] {
    Status used = status;
    if (used.ok()) used = FromCuda(cudaSetDevice(ordinal), "use device {}", ordinal);
    if (!used.ok()) LogWarn("cudnn: {}", Message(used));
  };
}

}  // namespace

CudnnSource::CudnnSource(std::shared_ptr<CudnnHandle> handle, DeviceProperties device,
                         const CudnnOptions& options)
    : handle_(std::move(handle)),
      device_(std::move(device)),
      compiled_plans_(options.plan_folder, CompiledCache::kBytesMax),
      on_compiled_(options.on_compiled),
      workers_(static_cast<size_t>(options.threads),
               handle_ == nullptr ? std::function<void()>() : UseThisDevice()) {}

std::string CudnnSource::LibraryVersion() { return VersionText(cudnnGetVersion()); }

StatusOr<std::unique_ptr<CudnnSource>> CudnnSource::Make(std::shared_ptr<CudnnHandle> handle,
                                                         DeviceProperties device,
                                                         const CudnnOptions& options) {
  AG_LET(const std::string properties, device.ToJson());
  std::unique_ptr<CudnnSource> source(
      new CudnnSource(std::move(handle), std::move(device), options));
  source->device_key_ = LibraryVersion() + properties;
  return source;
}

StatusOr<std::unique_ptr<CudnnSource>> CudnnSource::Open(const CudnnOptions& options) {
  AG_TRY(CheckVersion());
  auto handle = std::make_shared<CudnnHandle>();
  AG_TRY(FromCudnn(cudnnCreate(handle->out()), "open cuDNN {}", LibraryVersion()));
  AG_LET(DeviceProperties device, DeviceProperties::OfHandle(handle->get()));
  return Make(std::move(handle), std::move(device), options);
}

StatusOr<std::unique_ptr<CudnnSource>> CudnnSource::Deviceless(std::string_view properties,
                                                               const CudnnOptions& options) {
  AG_TRY(CheckVersion());
  AG_LET(DeviceProperties device, DeviceProperties::FromJson(properties));
  return Make(nullptr, std::move(device), options);
}

StatusOr<std::vector<std::string>> CudnnSource::Kernels(const GroupContext& context) {
  AG_LET(const CudnnGraph graph, BuildCudnnGraph(context));
  const StatusOr<std::vector<CudnnCandidate>> candidates =
      CudnnCandidates(graph, device_, context.precision, context.chip);
  if (candidates.status().code() == StatusCode::kInternal) {
    // The library fails for this graph; other sources may have a kernel.
    return Err(StatusCode::kUnimplemented, "{}", Message(candidates.status()));
  }
  AG_TRY(candidates);
  std::vector<std::string> names;
  for (const CudnnCandidate& candidate : *candidates) names.push_back(CudnnName(candidate.choice));
  return names;
}

StatusOr<Descriptor> CudnnSource::Build(const CudnnCandidate& candidate, const std::string& key) {
  // cuDNN accepts damaged code, but the folder only gives complete files.
  const bool keep = compiled_plans_.keeps_anything() && candidate.notes.compiles_at_run_time;
  const Digest digest = keep ? Sha256(device_key_ + key) : Digest();
  if (keep) {
    if (const std::optional<std::string> text = compiled_plans_.Find(digest)) {
      StatusOr<Descriptor> read = ReadPlan(*text, device_);
      if (read.ok()) return read;
      LogWarn("{}: compiled anew: {}", CudnnName(candidate.choice), Message(read.status()));
    }
  }
  AG_LET(Descriptor plan, BuildPlan(candidate, device_));
  if (on_compiled_ && candidate.notes.compiles_at_run_time)
    on_compiled_(CudnnName(candidate.choice));
  if (keep) {
    AG_LET(const std::string text, plan.GetText(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION));
    compiled_plans_.Put(digest, text);
  }
  return plan;
}

StatusOr<CudnnSource::SharedPlan> CudnnSource::NewPlan(CudnnGraph graph, Precision precision,
                                                       const CudnnChoice& choice,
                                                       const std::string& key) {
  auto plan = std::make_shared<CudnnPlan>();
  plan->graph = std::move(graph);
  AG_LET(plan->candidate, FindCudnnCandidate(plan->graph, device_, precision, choice));
  StatusOr<Descriptor> built = Build(plan->candidate, key);
  if (!built.ok() && built.status().code() != StatusCode::kResourceExhausted) {
    // A kernel that does not compile or load; others may.
    return Err(StatusCode::kUnimplemented, "{}", Message(built.status()));
  }
  AG_TRY(built);
  plan->plan = *std::move(built);
  AG_LET(plan->workspace_bytes, plan->plan.Get<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
  return plan;
}

CudnnSource::SharedPlan CudnnSource::Kept(const std::string& key, Precision precision,
                                          DType stored) {
  const auto found = compiled_.find(key);
  if (found == compiled_.end()) return nullptr;
  // The rules depend on the precision, the plan does not.
  return RefusalOf(found->second->candidate.notes, precision, stored).empty() ? found->second
                                                                              : nullptr;
}

StatusOr<CudnnSource::SharedPlan> CudnnSource::PlanOf(CudnnGraph graph, Precision precision,
                                                      const CudnnChoice& choice) {
  // Waits only for plans of the same precision: for another one the rules may refuse a kernel that
  // is allowed here.
  const std::string key = graph.signature + CudnnName(choice);
  const std::string making_key = fmt::format("{} {}", key, static_cast<int>(precision));
  auto making = std::make_shared<Making>();
  {
    const MutexLock lock(mutex_);
    if (SharedPlan kept = Kept(key, precision, graph.stored)) return kept;
    if (const auto other = making_.find(making_key); other != making_.end()) {
      making = other->second;
      while (!making->result.has_value()) made_.Wait(mutex_);
      return *making->result;
    }
    making_[making_key] = making;
  }
  StatusOr<SharedPlan> plan = NewPlan(std::move(graph), precision, choice, key);
  const bool is_compiled = plan.ok() && (*plan)->candidate.notes.compiles_at_run_time;
  {
    const MutexLock lock(mutex_);
    making->result = plan;
    making_.erase(making_key);
    if (is_compiled) {
      if (compiled_.size() == kCompiledMax) compiled_.clear();
      compiled_[key] = *plan;
    }
  }
  made_.NotifyAll();
  return plan;
}

struct CudnnSource::KeptGroup {
  explicit KeptGroup(const GroupContext& context)
      : graph(context.graph),
        group(context.group),
        precision(context.precision),
        chip(context.chip) {}
  GroupContext context() const { return {graph, group, precision, chip}; }

  const Graph graph;
  const Group group;
  const Precision precision;
  const Chip chip;
};

void CudnnSource::Prepare(const GroupContext& context) {
  workers_.Add([this, group = std::make_shared<const KeptGroup>(context)] { PrepareAll(group); });
}

// Compiles all; errors are reported when the kernel is made.
void CudnnSource::PrepareAll(const std::shared_ptr<const KeptGroup>& group) {
  const StatusOr<CudnnGraph> graph = BuildCudnnGraph(group->context());
  if (!graph.ok()) return;
  const auto candidates = CudnnCandidates(*graph, device_, group->precision, group->chip);
  if (!candidates.ok()) return;
  for (const CudnnCandidate& candidate : *candidates) {
    if (!candidate.notes.compiles_at_run_time) continue;
    workers_.Add([this, group, choice = candidate.choice] {
      {
        const MutexLock lock(mutex_);
        if (compiled_.size() >= kCompiledMax) return;  // It would not be kept.
      }
      StatusOr<CudnnGraph> own = BuildCudnnGraph(group->context());
      if (own.ok()) (void)PlanOf(*std::move(own), group->precision, choice);
    });
  }
}

StatusOr<std::unique_ptr<GroupKernel>> CudnnSource::Make(const GroupContext& context,
                                                         const std::string& kernel,
                                                         Constants& constants,
                                                         WeightMemory& memory) {
  AG_LET(const CudnnChoice choice, ParseCudnnName(kernel));
  AG_LET(CudnnGraph graph, BuildCudnnGraph(context));
  std::vector<CudnnBinding> bindings = graph.bindings;
  const std::vector<ConstantRecipe> recipes = graph.constants;
  AG_LET(SharedPlan plan, PlanOf(std::move(graph), context.precision, choice));
  std::vector<const std::byte*> addresses;
  for (const ConstantRecipe& recipe : recipes) {
    AG_LET(const std::vector<std::byte> bytes, PackConstant(recipe, constants));
    AG_LET(const std::byte* address, memory.Put(bytes));
    addresses.push_back(address);
  }
  return std::make_unique<CudnnKernel>(handle_, std::move(bindings), std::move(plan),
                                       std::move(addresses));
}

}  // namespace ag::cuda
