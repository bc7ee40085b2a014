// Kernels that are generated for the group and compiled on request: the fallback of every group,
// and a competitor of the libraries. Kernel names are "generated:" and the variant. One thread at a
// time.
#pragma once

#include <memory>

#include "device/cuda/launch/compiler.h"
#include "device/cuda/launch/group_kernel.h"

namespace ag::cuda {

// Returns the source. REQUIRES: `driver` outlives the source, the source its kernels.
std::unique_ptr<KernelSource> MakeGeneratedSource(Driver& driver,
                                                  std::unique_ptr<Compiler> compiler);

}  // namespace ag::cuda
