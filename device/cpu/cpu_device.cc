#include "device/cpu/cpu_device.h"

#include "base/thread.h"
#include "device/api/segments.h"
#include "device/cpu/aligned.h"
#include "device/cpu/cache_eviction.h"
#include "device/cpu/executable.h"
#include "device/cpu/host.h"
#include "device/cpu/kernel.h"
#include "device/cpu/packed_weights.h"
#include "device/cpu/parallel.h"
#include "device/cpu/wide.h"
#include "plan/format/plan_validate.h"

namespace ag {
namespace {

// The canary: arithmetic in registers and a pass over memory beyond the second cache, on all cores.
// It takes about a third of a millisecond, so that a lost scheduling slice is visible.
class CanaryWork {
 public:
  static StatusOr<CanaryWork> Make(int cores) {
    CanaryWork canary;
    canary.cores_ = cores;
    AG_LET(canary.memory_, cpu::AlignedBuffer::Make(kFloats * sizeof(float) * cores));
    return canary;
  }

  Nanos Run() const {
    const Nanos begin = RealClock().Now();
    cpu::ParallelFor(cores_, cores_, 1, [&](int64_t first, int64_t last, int) {
      for (int64_t part = first; part < last; ++part) Part(memory_.As<float>() + part * kFloats);
    });
    return RealClock().Now() - begin;
  }

 private:
  static constexpr int64_t kFloats = int64_t{1} << 18;  // 1 MiB a core.

  static void Part(float* x) {
    for (int sweep = 0; sweep < 4; ++sweep) {
      for (int64_t i = 0; i < kFloats; ++i) x[i] = x[i] * 0.5f + 1.0f;
    }
  }

  int cores_ = 1;
  cpu::AlignedBuffer memory_;
};

class CpuDevice : public Device {
 public:
  static StatusOr<std::unique_ptr<Device>> Open(int cores) {
    AG_LET(DeviceSpec spec, ParseDeviceSpec(cpu::SpecText(cores)));
    auto device = std::make_unique<CpuDevice>(std::move(spec), cpu::EnvironmentOf(cores));
    AG_LET(device->canary_, CanaryWork::Make(cores));
    return device;
  }
  CpuDevice(DeviceSpec spec, Environment environment)
      : Device(
            {.spec = std::move(spec), .environment = std::move(environment), .cools_caches = true}),
        eviction_(
            std::make_shared<cpu::CacheEviction>(this->spec().cores, cpu::LastLevelCacheBytes())) {}

  StatusOr<std::vector<std::string>> Kernels(const GroupProblem& problem) override {
    const Plan plan = SingleGroupPlan(problem);
    const int cores = problem.cores > 0 ? problem.cores : spec().cores;
    const cpu::OmpThreads threads(cores);
    AG_LET(const cpu::FloatGraphs graphs,
           cpu::FloatGraphs::Of(problem.graph, nullptr, problem.precision));
    const bool is_stored = graphs.stored != nullptr;
    return cpu::KernelNames({.graph = is_stored ? graphs.stored->graph() : problem.graph,
                             .group = plan.groups[0],
                             .cores = cores,
                             .wide = graphs.wide.get(),
                             .stores_bf16 = is_stored});
  }

  StatusOr<std::unique_ptr<Executable>> Build(const BuildRequest& request) override {
    AG_TRY(ValidatePlan(request.graph, request.plan, spec()));
    if (!request.plan.segments.empty()) return BuildSegments(*this, request);
    return cpu::MakeExecutable(request, {.cores = spec().cores,
                                         .memory_bytes_max = spec().memory_bytes,
                                         .eviction = eviction_,
                                         .packed = packed_});
  }

  std::optional<Nanos> RunBeside(int count, const std::function<void(int)>& work) override {
    const cpu::TeamScope team(spec().cores);
    const cpu::Team::Place here = cpu::Team::Here();
    if (here.inside || here.team->size() < count) return Device::RunBeside(count, work);
    const Nanos begin = RealClock().Now();
    here.team->Run(count, work);
    return RealClock().Now() - begin;
  }

  StatusOr<Nanos> Canary() override { return canary_.Run(); }

 private:
  CanaryWork canary_;
  const std::shared_ptr<cpu::CacheEviction> eviction_;
  const std::shared_ptr<cpu::PackedWeights> packed_ = std::make_shared<cpu::PackedWeights>();
};

}  // namespace

StatusOr<std::unique_ptr<Device>> OpenCpuDevice(const CpuOptions& options) {
  const int usable = UsableCores();
  if (options.cores < 0 || options.cores > usable) {
    return Err(StatusCode::kInvalidArgument, "cpu: {} cores asked for, {} usable", options.cores,
               usable);
  }
  const int cores = options.cores == 0 ? usable : options.cores;
  return CpuDevice::Open(cores);
}

}  // namespace ag
