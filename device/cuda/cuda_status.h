// The CUDA runtime's codes as Status; launch/driver.h lists the meanings of the codes. Pure
// functions.
#pragma once

#include <cuda_runtime_api.h>

#include "base/status.h"

namespace ag::cuda {

namespace internal {
Status MakeCudaStatus(cudaError_t code, std::string what);
}  // namespace internal

// Returns OK for cudaSuccess; else a status with what was tried, the code's name and its text.
// After a LostDevice no call of this process works any more.
template <class... Args>
Status FromCuda(cudaError_t code, fmt::format_string<Args...> what, Args&&... args) {
  if (code == cudaSuccess) return OkStatus();
  return internal::MakeCudaStatus(code, fmt::format(what, std::forward<Args>(args)...));
}

}  // namespace ag::cuda
