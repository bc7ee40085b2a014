// Status from the codes of cuDNN and cuBLASLt, one converter per library. Thread-safe.
//
//   AG_TRY(FromCudnn(cudnnSetStream(handle, stream), "set the stream"));
//
// The code says what the caller should do next:
//   kUnimplemented       this graph or algorithm is not supported: take another kernel
//   kResourceExhausted   memory on the host or the device
//   kFailedPrecondition  no driver, the library is not loaded or of another version
//   kUnavailable         a kernel could not be launched or failed: a LostDevice
//   kInternal            a bug here (a bad parameter), or in the library
// The message is "{what}: {the library}: {the code's name}", and for cuDNN its text about the last
// error, cut to kErrorTextMax characters of one line.
#pragma once

#include <cublasLt.h>
#include <cudnn_backend.h>

#include "base/status.h"

namespace ag::cuda {

inline constexpr size_t kErrorTextMax = 200;

namespace internal {
Status CudnnError(cudnnStatus_t status, std::string_view what);
Status CublasError(cublasStatus_t status, std::string_view what);
}  // namespace internal

template <class... Args>
Status FromCudnn(cudnnStatus_t status, fmt::format_string<Args...> format, Args&&... args) {
  if (status == CUDNN_STATUS_SUCCESS) return OkStatus();
  return internal::CudnnError(status, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
Status FromCublas(cublasStatus_t status, fmt::format_string<Args...> format, Args&&... args) {
  if (status == CUBLAS_STATUS_SUCCESS) return OkStatus();
  return internal::CublasError(status, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace ag::cuda
