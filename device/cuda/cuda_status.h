// The CUDA runtime's codes as Status. See launch/driver.h for which code means what.
#pragma once

#include <cuda_runtime_api.h>

#include "base/status.h"

namespace ag::cuda {

namespace internal {
Status MakeCudaStatus(cudaError_t code, std::string what);
}  // namespace internal

// OK for cudaSuccess; else what was tried, the code's name and its text. A code after which no call
// of this process will work says "sticky".
template <class... Args>
Status FromCuda(cudaError_t code, fmt::format_string<Args...> what, Args&&... args) {
  if (code == cudaSuccess) return OkStatus();
  return internal::MakeCudaStatus(code, fmt::format(what, std::forward<Args>(args)...));
}

}  // namespace ag::cuda
