// The CUDA device is a module of its own (libautograph_cuda.so), loaded when a `cuda:N` is asked
// for, so that everything else runs where CUDA is absent. Here is how it and the libraries that it
// needs are found.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/api/device.h"

namespace ag {

// Folders that may hold NVIDIA's libraries, in the order in which they are looked through after the
// loader's own: AUTOGRAPH_CUDA_PATH (folders between ':'), a toolkit in /usr/local/cuda, the wheels
// nvidia-* of a Python environment ($VIRTUAL_ENV and the system's). Only those that exist.
std::vector<std::string> CudaLibraryFolders();

// kUnimplemented: this build has no CUDA module, or the machine lacks the driver or a library; the
// message says which, where it was looked for, and what to do. Else what the module says. The
// module is never unloaded.
StatusOr<std::unique_ptr<Device>> OpenCudaModule(int ordinal);

}  // namespace ag
