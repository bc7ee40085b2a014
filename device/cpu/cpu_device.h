// The CPU as a device: kernels from oneDNN and our own, fused in groups (docs/devices.md). The
// device is used by one thread at a time.
#pragma once

#include <memory>

#include "device/api/device.h"

namespace ag {

struct CpuOptions {
  int cores = 0;  // 0: every core this process may run on.
};

// Opens the CPU of this machine. kInvalidArgument: fewer than 0 cores, or more than the process may
// use.
StatusOr<std::unique_ptr<Device>> OpenCpuDevice(const CpuOptions& options = {});

}  // namespace ag
