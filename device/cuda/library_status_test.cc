#include "device/cuda/library_status.h"

#include <gtest/gtest.h>

#include "device/api/lost_device.h"
#include "device/cuda/cudnn_descriptor.h"

namespace ag::cuda {
namespace {

TEST(LibraryStatus, TheCodeSaysWhatToDoNext) {
  const struct {
    cudnnStatus_t status;
    StatusCode code;
  } cudnn[] = {
      {CUDNN_STATUS_SUCCESS, StatusCode::kOk},
      {CUDNN_STATUS_NOT_INITIALIZED, StatusCode::kFailedPrecondition},
      {CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED, StatusCode::kFailedPrecondition},
      {CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER, StatusCode::kFailedPrecondition},
      {CUDNN_STATUS_NOT_SUPPORTED_SHAPE, StatusCode::kUnimplemented},
      {CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED, StatusCode::kUnimplemented},
      {CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, StatusCode::kResourceExhausted},
      {CUDNN_STATUS_BAD_PARAM_NULL_POINTER, StatusCode::kInternal},
      {CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER, StatusCode::kUnavailable},
  };
  for (const auto& c : cudnn) {
    const Status status = FromCudnn(c.status, "call");
    EXPECT_EQ(status.code(), c.code) << cudnnGetErrorString(c.status);
    EXPECT_EQ(IsLostDevice(status), c.code == StatusCode::kUnavailable);
  }
  const struct {
    cublasStatus_t status;
    StatusCode code;
  } cublas[] = {
      {CUBLAS_STATUS_SUCCESS, StatusCode::kOk},
      {CUBLAS_STATUS_NOT_INITIALIZED, StatusCode::kFailedPrecondition},
      {CUBLAS_STATUS_ALLOC_FAILED, StatusCode::kResourceExhausted},
      {CUBLAS_STATUS_NOT_SUPPORTED, StatusCode::kUnimplemented},
      {CUBLAS_STATUS_INVALID_VALUE, StatusCode::kInternal},
      {CUBLAS_STATUS_EXECUTION_FAILED, StatusCode::kUnavailable},
  };
  for (const auto& c : cublas) {
    const Status status = FromCublas(c.status, "call");
    EXPECT_EQ(status.code(), c.code) << cublasLtGetStatusName(c.status);
    EXPECT_EQ(IsLostDevice(status), c.code == StatusCode::kUnavailable);
  }
}

TEST(LibraryStatus, TheMessageNamesWhatWasDoneAndTheCode) {
  EXPECT_EQ(ToString(FromCublas(CUBLAS_STATUS_NOT_SUPPORTED, "multiply {} rows", 7)),
            "UNIMPLEMENTED: multiply 7 rows: cuBLASLt: CUBLAS_STATUS_NOT_SUPPORTED");
}

// The message has cuDNN's text about its last error, as one line of bounded length.
TEST(LibraryStatus, CudnnsOwnTextIsTold) {
  const Status status = DescriptorBuilder(CUDNN_BACKEND_TENSOR_DESCRIPTOR, "a tensor")
                            .SetAll(CUDNN_ATTR_TENSOR_DIMENSIONS, std::vector<int64_t>{1, 2})
                            .Finish()
                            .status();
  ASSERT_EQ(status.code(), StatusCode::kInternal);
  const std::string message = Message(status);
  const std::string begin = "a tensor: finalize: cuDNN: CUDNN_STATUS_BAD_PARAM: ";
  EXPECT_EQ(message.substr(0, begin.size()), begin);
  EXPECT_LE(message.size(), begin.size() + kErrorTextMax + 3);
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace ag::cuda
