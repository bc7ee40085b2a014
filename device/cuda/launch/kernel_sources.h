// All kernels of a device: its sources, asked in order. One thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/cuda/launch/group_kernel.h"

namespace ag::cuda {

class KernelSources {
 public:
  // Takes the sources; the first one's best guess is the device's default.
  explicit KernelSources(std::vector<std::unique_ptr<KernelSource>> sources)
      : sources_(std::move(sources)) {}

  // Returns the kernels of all sources that can run the group. kUnimplemented when none has any:
  // lists what each source misses.
  StatusOr<std::vector<std::string>> Kernels(const GroupContext& context);

  // Tells all sources that the group's kernels will soon be made.
  void Prepare(const GroupContext& context) {
    for (const auto& source : sources_) source->Prepare(context);
  }

  // Makes a kernel; "" is the first of Kernels. kInvalidArgument: no source has that name.
  StatusOr<std::unique_ptr<GroupKernel>> Make(const GroupContext& context,
                                              const std::string& kernel, Constants& constants,
                                              WeightMemory& memory);

 private:
  std::vector<std::unique_ptr<KernelSource>> sources_;
};

}  // namespace ag::cuda
