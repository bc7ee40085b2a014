// Kernels of cuDNN 9 for convolution and dense groups (names: cudnn_candidates.h). One thread at a
// time; Prepare's own threads work beside it.
//
// Opened for a device, or without one for a device that a text describes: then everything but
// Enqueue works, which is kFailedPrecondition. Plans are built from the device's properties in both
// cases, so tests without a device test the plans that run on one.
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
  // The folder of kernels that are compiled at run time (launch/compiled_cache.h); "": none.
  std::string plan_folder;
  // Kernels that Prepare compiles at a time; 0: half the cores, 8 at most.
  int threads = 0;
  // Called with the name of a kernel on the thread that compiled it at run time. For tests.
  std::function<void(const std::string& kernel)> on_compiled;
};

class CudnnSource : public KernelSource {
 public:
  // Opens the source for the calling thread's current device. kFailedPrecondition: no driver, no
  // device, or a cuDNN older than 9.8.
  static StatusOr<std::unique_ptr<CudnnSource>> Open(const CudnnOptions& options = {});
  // Opens the source for the device that `properties` (JSON, see device_properties.h) describes.
  static StatusOr<std::unique_ptr<CudnnSource>> Deviceless(std::string_view properties,
                                                           const CudnnOptions& options = {});

  std::string_view name() const override { return "cudnn"; }
  StatusOr<std::vector<std::string>> Kernels(const GroupContext& context) override;
  // Compiles the group's run-time kernels on threads of its own: finalizing plans of one device is
  // thread-safe, and several threads finalize at once.
  void Prepare(const GroupContext& context) override;
  StatusOr<std::unique_ptr<GroupKernel>> Make(const GroupContext& context,
                                              const std::string& kernel, Constants& constants,
                                              WeightMemory& memory) override;

  // A kernel ready to run, without its memory; later members refer to earlier ones.
  struct CudnnPlan {
    CudnnGraph graph;
    CudnnCandidate candidate;
    Descriptor plan;
    int64_t workspace_bytes = 0;
  };

  const DeviceProperties& device() const { return device_; }
  // Returns the version of the loaded library, e.g. "9.19.0".
  static std::string LibraryVersion();

 private:
  static constexpr size_t kCompiledMax = 1024;  // Of about 0.1 MB.
  using SharedPlan = std::shared_ptr<const CudnnPlan>;
  // A plan that a thread is making; `result` is set when it is done.
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
  // Builds a plan. Kernels that are compiled at run time (0.2 to 3 s) are kept, since a network has
  // many equal groups.
  StatusOr<Descriptor> Build(const CudnnCandidate& candidate, const std::string& key);
  StatusOr<SharedPlan> NewPlan(CudnnGraph graph, Precision precision, const CudnnChoice& choice,
                               const std::string& key);
  // Returns a kept plan, the result of a thread that is making it, or a new one. Thread-safe.
  StatusOr<SharedPlan> PlanOf(CudnnGraph graph, Precision precision, const CudnnChoice& choice);
  // Returns the kept plan of this key, if the precision's rules allow it.
  SharedPlan Kept(const std::string& key, Precision precision, DType stored) AG_REQUIRES(mutex_);
  void PrepareAll(const std::shared_ptr<const KeptGroup>& group);

  std::shared_ptr<CudnnHandle> handle_;  // Null without a device. Shared with its kernels.
  DeviceProperties device_;
  std::string device_key_;        // The begin of the folder's keys.
  CompiledCache compiled_plans_;  // Keeps nothing without plan_folder.
  std::function<void(const std::string&)> on_compiled_;
  Mutex mutex_;
  CondVar made_;
  std::map<std::string, SharedPlan> compiled_ AG_GUARDED_BY(mutex_);  // By signature and name.
  std::map<std::string, std::shared_ptr<Making>> making_ AG_GUARDED_BY(mutex_);
  Workers workers_;  // Ends before the members that its tasks use.
};

}  // namespace ag::cuda
