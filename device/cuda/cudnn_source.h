// Kernels of cuDNN 9 for convolution and dense groups (names: cudnn_candidates.h).
//
// Opened for a device, or without one for the device that a text describes: then everything but
// Enqueue works, which is kFailedPrecondition. Plans are built from the device's properties in both
// cases, so that what is tested without a device is what runs on one.
#pragma once

#include <memory>

#include "device/cuda/cudnn_candidates.h"

namespace ag::cuda {

struct CudnnHandleTraits {
  using Raw = cudnnHandle_t;
  static constexpr Raw kNone = nullptr;
  static void Free(Raw raw) { cudnnDestroy(raw); }
};
using CudnnHandle = UniqueHandle<CudnnHandleTraits>;

class CudnnSource : public KernelSource {
 public:
  // For the calling thread's current device. kFailedPrecondition: no driver, no device, or a cuDNN
  // older than 9.8.
  static StatusOr<std::unique_ptr<CudnnSource>> Open();
  // For the device that `properties` (JSON, see device_properties.h) describes.
  static StatusOr<std::unique_ptr<CudnnSource>> Deviceless(std::string_view properties);

  std::string_view name() const override { return "cudnn"; }
  StatusOr<std::vector<std::string>> Kernels(const GroupContext& context) override;
  StatusOr<std::unique_ptr<GroupKernel>> Make(const GroupContext& context,
                                              const std::string& kernel, Constants& constants,
                                              WeightMemory& memory) override;

  const DeviceProperties& device() const { return device_; }
  // "9.19.0", of the library that is loaded.
  static std::string LibraryVersion();

 private:
  CudnnSource(std::shared_ptr<CudnnHandle> handle, DeviceProperties device)
      : handle_(std::move(handle)), device_(std::move(device)) {}
  std::shared_ptr<CudnnHandle> handle_;  // Null without a device. Shared with its kernels.
  DeviceProperties device_;
};

}  // namespace ag::cuda
