// The device behind `cuda:N`: a chip, the kernels that it can run, and the driver that runs them.
// Knows nothing of how these were found, so that it is the same where a driver stands in for the
// real one.
#pragma once

#include <memory>

#include "device/api/device.h"
#include "device/cuda/launch/kernel_sources.h"

namespace ag::cuda {

struct GpuParts {
  std::unique_ptr<Driver> driver;
  std::unique_ptr<KernelSources> sources;  // Made on `driver`.
  Chip chip;
  DeviceSpec spec;
  Environment environment;
};

// Executables do not outlive the device. Canary runs a fixed small network; the first call makes
// it.
std::unique_ptr<Device> MakeGpuDevice(GpuParts parts);

}  // namespace ag::cuda
