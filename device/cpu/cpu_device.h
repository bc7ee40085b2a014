// The CPU as a device: kernels from oneDNN and our own, fused in groups (docs/devices.md).
#pragma once

#include <memory>

#include "device/api/device.h"

namespace ag {

struct CpuOptions {
  int cores = 0;  // 0: every core this process may run on.
};

// Opens the CPU of this machine. kInvalidArgument: more cores asked for than the process may use,
// or fewer than none. Each Executable owns the threads of its streams (none for a plan of one
// stream).
StatusOr<std::unique_ptr<Device>> OpenCpuDevice(const CpuOptions& options = {});

}  // namespace ag
