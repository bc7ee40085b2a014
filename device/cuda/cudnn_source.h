// Kernels of cuDNN 9 for convolution and dense groups (names: cudnn_candidates.h).
//
// Opened for a device, or without one for the device that a text describes: then everything but
// Enqueue works, which is kFailedPrecondition. Plans are built from the device's properties in both
// cases, so that what is tested without a device is what runs on one.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "base/mutex.h"
#include "device/cuda/cudnn_candidates.h"
#include "device/cuda/launch/compiled_cache.h"
#include "device/cuda/launch/workers.h"

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
  // Kernels that Prepare compiles at a time; 0: half the cores, 8 at most.
  int threads = 0;
  // Called on the thread that compiled a kernel at run time, with its name. For tests.
  std::function<void(const std::string& kernel)> on_compiled;
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
  // Compiles the group's kernels that are compiled at run time, on threads of its own: finalizing
  // plans of one device is thread-safe, and threads run side by side in it.
  void Prepare(const GroupContext& context) override;
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
  static constexpr size_t kCompiledMax = 1024;  // Of about 0.1 MB.
  using SharedPlan = std::shared_ptr<const CudnnPlan>;
  // A plan in the making; the result is there when it is done.
  struct Making {
    std::optional<StatusOr<SharedPlan>> result;
  };
  // A group that outlives its request.
  struct KeptGroup;

  CudnnSource(std::shared_ptr<CudnnHandle> handle, DeviceProperties device,
              const CudnnOptions& options);
  static StatusOr<std::unique_ptr<CudnnSource>> Make(std::shared_ptr<CudnnHandle> handle,
                                                     DeviceProperties device,
                                                     const CudnnOptions& options);
  // Kernels that are compiled at run time (0.2 to 3 s) are kept: a network has many equal groups.
  StatusOr<Descriptor> Build(const CudnnCandidate& candidate, const std::string& key);
  StatusOr<SharedPlan> NewPlan(CudnnGraph graph, Precision precision, const CudnnChoice& choice,
                               const std::string& key);
  // One that is kept, or is being made, or a new one. Thread-safe.
  StatusOr<SharedPlan> PlanOf(CudnnGraph graph, Precision precision, const CudnnChoice& choice);
  // The kept plan of this key, if the precision's rules allow it.
  SharedPlan Kept(const std::string& key, Precision precision, DType stored) AG_REQUIRES(mutex_);
  void PrepareAll(const std::shared_ptr<const KeptGroup>& group);

  std::shared_ptr<CudnnHandle> handle_;  // Null without a device. Shared with its kernels.
  DeviceProperties device_;
  std::string device_key_;        // What the folder's keys begin with.
  CompiledCache compiled_plans_;  // Keeps nothing without plan_folder.
  std::function<void(const std::string&)> on_compiled_;
  Mutex mutex_;
  CondVar made_;
  std::map<std::string, SharedPlan> compiled_ AG_GUARDED_BY(mutex_);  // By signature and name.
  std::map<std::string, std::shared_ptr<Making>> making_ AG_GUARDED_BY(mutex_);
  Workers workers_;  // Ends before what its tasks use.
};

}  // namespace ag::cuda
