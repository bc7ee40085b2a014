// The module's only exported function (device/cuda_module.h describes how it is found).
#include <cublasLt.h>
#include <cudnn.h>

#include "base/build_facts.h"
#include "base/log.h"
#include "device/cuda/cublaslt_source.h"
#include "device/cuda/cuda_driver.h"
#include "device/cuda/cudnn_source.h"
#include "device/cuda/launch/compiler.h"
#include "device/cuda/launch/generated_source.h"
#include "device/cuda/launch/gpu_device.h"
#include "device/cuda/machine.h"

namespace ag::cuda {
namespace {

StatusOr<std::unique_ptr<Device>> OpenDevice(int ordinal, const std::string& library_folders) {
  GpuParts parts;
  AG_LET(parts.driver, OpenCudaDriver(ordinal));
  AG_LET(const MachineFacts facts, ReadMachine(ordinal));
  if (facts.other_processes > 0) {
    LogWarn("cuda:{}: {} other processes compute on it; times will scatter", ordinal,
            facts.other_processes);
  }
  AG_LET(parts.spec, SpecOf(facts));
  parts.chip = ChipOf(facts);
  parts.environment =
      EnvironmentOf(facts, {.cublaslt = cublasLtGetVersion(), .cudnn = cudnnGetVersion()});
  // The first kernel of the first source is the guess where nothing is measured: cuBLASLt's was at
  // 1.03 of the best, the first generated one at 1.14 (medians of 52 convolutions in fp16 on an
  // H200, bench/results/2026-11-26-h200.md), cuDNN's up to 16 times slower.
  std::vector<std::unique_ptr<KernelSource>> sources;
  AG_LET(std::unique_ptr<CublasLtLibrary> cublaslt, OpenCublasLt());
  sources.push_back(std::make_unique<CublasLtSource>(std::move(cublaslt)));
  sources.push_back(MakeGeneratedSource(*parts.driver, MakeNvrtcCompiler({library_folders})));
  AG_LET(std::unique_ptr<CudnnSource> cudnn,
         CudnnSource::Open({.plan_folder = CompiledCache::DefaultFolder()}));
  sources.push_back(std::move(cudnn));
  parts.sources = std::make_unique<KernelSources>(std::move(sources));
  return MakeGpuDevice(std::move(parts));
}

}  // namespace
}  // namespace ag::cuda

extern "C" __attribute__((visibility("default"))) void ag_open_cuda_device(
    const char* version, int ordinal, const char* library_folders,
    ag::StatusOr<std::unique_ptr<ag::Device>>* opened) {
  if (version != ag::Version()) {
    *opened = ag::Err(ag::StatusCode::kFailedPrecondition,
                      "the module is of version {}, the program of {}; install both from one build",
                      ag::Version(), version);
    return;
  }
  *opened = ag::cuda::OpenDevice(ordinal, library_folders);
}
