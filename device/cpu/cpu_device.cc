#include "device/cpu/cpu_device.h"

#include <cmath>
#include <cstring>

#include "device/cpu/aligned.h"
#include "device/cpu/cache_flush.h"
#include "device/cpu/executable.h"
#include "device/cpu/host.h"
#include "device/cpu/kernel.h"
#include "device/cpu/packed_weights.h"
#include "device/cpu/parallel.h"

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
    auto device = std::make_unique<CpuDevice>();
    AG_LET(device->spec_, ParseDeviceSpec(cpu::SpecText(cores)));
    device->environment_ = cpu::EnvironmentOf(cores);
    AG_LET(device->canary_, CanaryWork::Make(cores));
    AG_LET(device->cooling_, cpu::AlignedBuffer::Make(kCoolingBytes * cores));
    device->flush_ = std::make_shared<cpu::CacheFlush>(cores, cpu::LastLevelCacheBytes());
    return device;
  }

  const DeviceSpec& spec() const override { return spec_; }
  const Environment& environment() const override { return environment_; }

  StatusOr<std::vector<std::string>> Kernels(const GroupProblem& problem) override {
    const Plan plan = SingleGroupPlan(problem);
    const int cores = problem.cores > 0 ? problem.cores : spec_.cores;
    const cpu::OmpThreads threads(cores);
    return cpu::KernelNames({problem.graph, plan.groups[0], cores, nullptr});
  }

  StatusOr<std::unique_ptr<Executable>> Build(const Graph& graph, const Plan& plan,
                                              const WeightSource& weights) override {
    AG_TRY(ValidatePlan(graph, plan, spec_));
    return cpu::MakeExecutable(graph, plan, weights,
                               {.cores = spec_.cores,
                                .memory_bytes_max = spec_.memory_bytes,
                                .flush = flush_,
                                .packed = packed_});
  }

  StatusOr<Nanos> Canary() override { return canary_.Run(); }

  bool CoolCaches() override {
    cpu::ParallelFor(spec_.cores, spec_.cores, 1, [&](int64_t first, int64_t last, int) {
      for (int64_t part = first; part < last; ++part) {
        std::memset(cooling_.data() + part * kCoolingBytes, static_cast<int>(part), kCoolingBytes);
      }
    });
    return true;
  }

 private:
  // A core's own caches are 2 MiB on current servers, half of that on most.
  static constexpr int64_t kCoolingBytes = int64_t{3} << 20;

  DeviceSpec spec_;
  Environment environment_;
  CanaryWork canary_;
  cpu::AlignedBuffer cooling_;
  std::shared_ptr<cpu::CacheFlush> flush_;
  const std::shared_ptr<cpu::PackedWeights> packed_ = std::make_shared<cpu::PackedWeights>();
};

}  // namespace

StatusOr<std::unique_ptr<Device>> OpenCpuDevice(const CpuOptions& options) {
  const int usable = cpu::UsableCores();
  if (options.cores < 0 || options.cores > usable) {
    return Err(StatusCode::kInvalidArgument, "cpu: {} cores asked for, {} usable", options.cores,
               usable);
  }
  const int cores = options.cores == 0 ? usable : options.cores;
  return CpuDevice::Open(cores);
}

}  // namespace ag
