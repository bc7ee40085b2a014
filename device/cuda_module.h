// The loading of the CUDA device, which is a module of its own (libautograph_cuda.so) and is loaded
// when a `cuda:N` is opened, so that everything else runs where CUDA is absent. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/api/device.h"

namespace ag {

// Returns the existing folders that may have NVIDIA's libraries, in the order of the search:
// AUTOGRAPH_CUDA_PATH (folders separated by ':'), then, after the loader's own, a toolkit in
// /usr/local/cuda, the wheels nvidia-* of Python environments ($VIRTUAL_ENV, that of PATH's
// python3, the system's).
std::vector<std::string> CudaLibraryFolders();

// Opens GPU number `ordinal`; loads the module, which is never unloaded. kUnimplemented: this build
// has no CUDA module, or the machine lacks the driver or a library; the message says which, where
// it was looked for, and what to do. Otherwise returns the module's status.
StatusOr<std::unique_ptr<Device>> OpenCudaModule(int ordinal);

}  // namespace ag
