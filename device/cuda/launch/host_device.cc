#include "device/cuda/launch/host_device.h"

#include "device/cuda/launch/reference_source.h"

namespace ag::cuda {

std::unique_ptr<Device> OpenHostDevice(HostKernels, DeviceSpec spec, uint64_t seed) {
  auto functions = std::make_shared<std::map<std::string, HostDriver::Function>>();
  GpuParts parts;
  parts.driver =
      std::make_unique<HostDriver>(HostDriver::Options{.find = FindIn(functions), .seed = seed});
  std::vector<std::unique_ptr<KernelSource>> sources;
  sources.push_back(MakeReferenceSource(*parts.driver, functions));
  parts.sources = std::make_unique<KernelSources>(std::move(sources));
  parts.spec = std::move(spec);
  parts.environment = "device=cuda-on-host";
  return MakeGpuDevice(std::move(parts));
}

}  // namespace ag::cuda
