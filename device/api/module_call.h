// The exported function of a device module: the contract between the module and the program that
// loads it. A constant and a type.
#pragma once

#include <memory>

#include "device/api/device.h"

namespace ag {

// Opens a device of the module and sets `opened`. `version` is the program's (base/build_facts.h):
// both must be of one build. `library_folders`: folders that may have NVIDIA's libraries, separated
// by ':'.
inline constexpr char kOpenCudaSymbol[] = "ag_open_cuda_device";
using OpenCudaCall = void(const char* version, int ordinal, const char* library_folders,
                          StatusOr<std::unique_ptr<Device>>* opened);

}  // namespace ag
