// The words that generated text uses for everything that is not plain C++: thread and block
// indices, shared memory, barriers, exchanges between threads, 16-bit floats, waiting for earlier
// kernels; and the functions of the operators. prelude/words.inc is the same everywhere and needs
// prelude/gpu.inc or prelude/host.inc. Thread-safe.
#pragma once

#include <string>

namespace ag::cuda {

const std::string& GpuPrelude();   // For NVRTC; needs no header.
const std::string& HostPrelude();  // For host_kernels.h.

}  // namespace ag::cuda
