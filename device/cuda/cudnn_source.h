// Kernels of cuDNN 9 for convolution and dense groups (names: cudnn_candidates.h).
//
// Opened for a device, or without one for the device that a text describes: then everything but
// Enqueue works, which is kFailedPrecondition. Plans are built from the device's properties in both
// cases, so that what is tested without a device is what runs on one.
#pragma once

#include <map>
#include <memory>

#include "device/cuda/cudnn_candidates.h"
#include "device/cuda/launch/compiled_cache.h"

namespace ag::cuda {

struct CudnnHandleTraits {
  using Raw = cudnnHandle_t;
  static constexpr Raw kNone = nullptr;
  static void Free(Raw raw) { cudnnDestroy(raw); }
};
using CudnnHandle = UniqueHandle<CudnnHandleTraits>;

struct CudnnOptions {
  // Where kernels that are compiled at run time are kept (launch/compiled_cache.h); "": nowhere.
  std::string plan_folder;
};

class CudnnSource : public KernelSource {
 public:
  // For the calling thread's current device. kFailedPrecondition: no driver, no device, or a cuDNN
  // older than 9.8.
  static StatusOr<std::unique_ptr<CudnnSource>> Open(const CudnnOptions& options = {});
  // For the device that `properties` (JSON, see device_properties.h) describes.
  static StatusOr<std::unique_ptr<CudnnSource>> Deviceless(std::string_view properties,
                                                           const CudnnOptions& options = {});

  std::string_view name() const override { return "cudnn"; }
  StatusOr<std::vector<std::string>> Kernels(const GroupContext& context) override;
  StatusOr<std::unique_ptr<GroupKernel>> Make(const GroupContext& context,
                                              const std::string& kernel, Constants& constants,
                                              WeightMemory& memory) override;

  // A kernel ready to run, without what it runs on; what is later refers to what is earlier.
  struct CudnnPlan {
    CudnnGraph graph;
    CudnnCandidate candidate;
    Descriptor plan;
    int64_t workspace_bytes = 0;
  };

  const DeviceProperties& device() const { return device_; }
  // "9.19.0", of the library that is loaded.
  static std::string LibraryVersion();

 private:
  static constexpr size_t kCompiledMax = 256;  // Of about 0.1 MB.

  CudnnSource(std::shared_ptr<CudnnHandle> handle, DeviceProperties device,
              const CudnnOptions& options)
      : handle_(std::move(handle)),
        device_(std::move(device)),
        compiled_plans_(options.plan_folder, CompiledCache::kBytesMax) {}
  static StatusOr<std::unique_ptr<CudnnSource>> Make(std::shared_ptr<CudnnHandle> handle,
                                                     DeviceProperties device,
                                                     const CudnnOptions& options);
  // Kernels that are compiled at run time (0.2 to 3 s) are kept: a network has many equal groups.
  StatusOr<Descriptor> Build(const CudnnCandidate& candidate, const std::string& key);
  StatusOr<std::shared_ptr<const CudnnPlan>> PlanOf(CudnnGraph graph, Precision precision,
                                                    const CudnnChoice& choice);

  std::shared_ptr<CudnnHandle> handle_;  // Null without a device. Shared with its kernels.
  DeviceProperties device_;
  std::map<std::string, std::shared_ptr<const CudnnPlan>> compiled_;  // By signature and name.
  std::string device_key_;        // What the folder's keys begin with.
  CompiledCache compiled_plans_;  // Keeps nothing without plan_folder.
};

}  // namespace ag::cuda
