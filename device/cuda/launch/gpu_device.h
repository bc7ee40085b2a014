// The device behind `cuda:N`: a chip, its kernels, and the driver that runs them. It does not know
// where these come from, so it also works with a driver that stands in for the real one. One thread
// at a time.
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

// Returns the device. Executables must not outlive it. Canary runs a fixed small network, which the
// first call makes.
std::unique_ptr<Device> MakeGpuDevice(GpuParts parts);

}  // namespace ag::cuda
