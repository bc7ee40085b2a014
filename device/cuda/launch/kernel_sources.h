// All the kernels of a device: its sources, asked one after the other.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/cuda/launch/group_kernel.h"

namespace ag::cuda {

class KernelSources {
 public:
  // The first source's guess is the device's default.
  explicit KernelSources(std::vector<std::unique_ptr<KernelSource>> sources)
      : sources_(std::move(sources)) {}

  // Kernels of all sources that can run the group. kUnimplemented when none has any: what each
  // source misses.
  StatusOr<std::vector<std::string>> Kernels(const GroupContext& context);

  // Tells all sources that the group's kernels will be made soon.
  void Prepare(const GroupContext& context) {
    for (const auto& source : sources_) source->Prepare(context);
  }

  // "" is the first of Kernels. kInvalidArgument: no source has that name.
  StatusOr<std::unique_ptr<GroupKernel>> Make(const GroupContext& context,
                                              const std::string& kernel, Constants& constants,
                                              WeightMemory& memory);

 private:
  std::vector<std::unique_ptr<KernelSource>> sources_;
};

}  // namespace ag::cuda
