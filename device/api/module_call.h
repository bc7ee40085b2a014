// What a device module exports: the contract between the program that loads it and the module.
#pragma once

#include <memory>

#include "device/api/device.h"

namespace ag {

// Opens a device of the module; `opened` is filled in. `version` is the program's
// (base/build_facts.h): both must be of one build. `library_folders`: where NVIDIA's libraries may
// lie, between ':'.
inline constexpr char kOpenCudaSymbol[] = "ag_open_cuda_device";
using OpenCudaCall = void(const char* version, int ordinal, const char* library_folders,
                          StatusOr<std::unique_ptr<Device>>* opened);

}  // namespace ag
