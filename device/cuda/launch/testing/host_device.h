// A GPU device without a GPU, for tests: gpu_device.h on a host_driver.h. One thread at a time.
#pragma once

#include "device/cuda/launch/gpu_device.h"
#include "device/cuda/launch/testing/host_driver.h"

namespace ag::cuda {

enum class HostKernels : uint8_t {
  kReference,  // reference_source.h: tests the code between a plan and its kernels.
  kGenerated,  // generated_source.h, compiled for the host: tests the kernels, too. Slow.
};

std::unique_ptr<Device> OpenHostDevice(HostKernels kernels, DeviceSpec spec, uint64_t seed = 1);

}  // namespace ag::cuda
