// The words that generated text uses for what is not plain C++: thread and block indices, shared
// memory, barriers, exchanges between threads, 16-bit floats, waiting for earlier kernels; and the
// functions of the operators. The text of prelude/words.inc is the same everywhere, it stands on
// prelude/gpu.inc or prelude/host.inc.
#pragma once

#include <string>

namespace ag::cuda {

const std::string& GpuPrelude();   // For NVRTC; needs no header.
const std::string& HostPrelude();  // For host_kernels.h.

}  // namespace ag::cuda
