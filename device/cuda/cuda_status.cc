#include "device/cuda/cuda_status.h"

#include "device/api/lost_device.h"

namespace ag::cuda::internal {
namespace {

// True for codes after which the context is lost: every later call returns the same code.
bool IsSticky(cudaError_t code) {
  switch (code) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorECCUncorrectable:
    case cudaErrorAssert:
    case cudaErrorContained:
    case cudaErrorExternalDevice:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorMpsConnectionFailed:
    case cudaErrorMpsRpcFailure:
    case cudaErrorDeviceUninitialized:
    case cudaErrorContextIsDestroyed:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

StatusCode CudaCodeOf(cudaError_t code) {
  switch (code) {
    case cudaErrorMemoryAllocation:
    case cudaErrorLaunchOutOfResources:
      return StatusCode::kResourceExhausted;
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
      return StatusCode::kNotFound;
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorNotSupported:
    case cudaErrorStreamCaptureUnsupported:
      return StatusCode::kUnimplemented;
    case cudaErrorDevicesUnavailable:
    case cudaErrorSystemNotReady:
      return StatusCode::kUnavailable;
    default:
      return StatusCode::kInternal;
  }
}

}  // namespace

Status MakeCudaStatus(cudaError_t code, std::string what) {
  const bool is_sticky = IsSticky(code);
  Status error = Err(is_sticky ? StatusCode::kUnavailable : CudaCodeOf(code), "{}: {}: {}{}", what,
                     cudaGetErrorName(code), cudaGetErrorString(code),
                     is_sticky ? " (the device must be opened in a fresh process)" : "");
  return is_sticky ? LostDevice(std::move(error)) : error;
}

}  // namespace ag::cuda::internal
