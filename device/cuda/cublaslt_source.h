// Kernels of cuBLASLt for products, MatMul [Add] [Add] [ReLU, GELU], and for convolutions that read
// one pixel, in channels last, as one call (names: cublaslt_choice.h; exactness under a policy and
// refusals: cublaslt_problem.h). One thread at a time.
//
// The list is the library's own, of up to kSuggestedMax for each form. A kernel is always made from
// its name and never from the list's answer, so it is the same in every process. A suggestion that
// its name does not rebuild is not listed.
#pragma once

#include "device/cuda/cublaslt_library.h"
#include "device/cuda/launch/group_kernel.h"

namespace ag::cuda {

class CublasLtSource : public KernelSource {
 public:
  static constexpr int kSuggestedMax = 32;

  explicit CublasLtSource(std::shared_ptr<CublasLtLibrary> library)
      : library_(std::move(library)) {}

  std::string_view name() const override { return "cublaslt"; }
  StatusOr<std::vector<std::string>> Kernels(const GroupContext& context) override;
  StatusOr<std::unique_ptr<GroupKernel>> Make(const GroupContext& context,
                                              const std::string& kernel, Constants& constants,
                                              WeightMemory& memory) override;

 private:
  std::shared_ptr<CublasLtLibrary> library_;  // Shared with its kernels.
};

}  // namespace ag::cuda
