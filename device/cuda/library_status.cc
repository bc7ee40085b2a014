#include "device/cuda/library_status.h"

#include "device/api/lost_device.h"

#include <algorithm>
#include <array>

namespace ag::cuda {
namespace {

StatusCode CodeOf(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_NOT_INITIALIZED:
    case CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH:
    case CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED:
    case CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER:
    case CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDART:
      return StatusCode::kFailedPrecondition;
    case CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED:
    case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED:
      return StatusCode::kResourceExhausted;
    case CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED:
      return StatusCode::kUnimplemented;
    default:
      break;
  }
  const int category = CUDNN_STATUS_CATEGORY(static_cast<int>(status));
  if (category == CUDNN_STATUS_NOT_SUPPORTED) return StatusCode::kUnimplemented;
  if (category == CUDNN_STATUS_EXECUTION_FAILED) return StatusCode::kUnavailable;
  return StatusCode::kInternal;
}

StatusCode CodeOf(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return StatusCode::kFailedPrecondition;
    case CUBLAS_STATUS_ALLOC_FAILED:
      return StatusCode::kResourceExhausted;
    case CUBLAS_STATUS_NOT_SUPPORTED:
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return StatusCode::kUnimplemented;
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return StatusCode::kUnavailable;
    default:
      return StatusCode::kInternal;
  }
}

// Returns cuDNN's text about its last error on this thread, as one line; "" when there is none.
std::string LastText() {
  std::array<char, 1024> text{};
  cudnnGetLastErrorString(text.data(), text.size());
  std::string line(text.data());
  std::ranges::replace(line, '\n', ' ');
  while (!line.empty() && line.back() == ' ') line.pop_back();
  if (line.size() > kErrorTextMax) line = line.substr(0, kErrorTextMax) + "...";
  return line;
}

// A kernel that failed took the context with it.
Status MayBeLost(Status error) {
  return error.code() == StatusCode::kUnavailable ? LostDevice(std::move(error)) : error;
}

}  // namespace

namespace internal {

Status CudnnError(cudnnStatus_t status, std::string_view what) {
  const StatusCode code = CodeOf(status);
  const std::string text = LastText();
  return MayBeLost(Err(code, "{}: cuDNN: {}{}{}", what, cudnnGetErrorString(status),
                       text.empty() ? "" : ": ", text));
}

Status CublasError(cublasStatus_t status, std::string_view what) {
  return MayBeLost(Err(CodeOf(status), "{}: cuBLASLt: {}", what, cublasLtGetStatusName(status)));
}

}  // namespace internal
}  // namespace ag::cuda
