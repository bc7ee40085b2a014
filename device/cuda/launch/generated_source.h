// Kernels that are generated for the group and compiled on request: what every group can fall back
// to, and the third to compete with the libraries. Kernel names are "generated:" and the variant.
#pragma once

#include <memory>

#include "device/cuda/launch/compiler.h"
#include "device/cuda/launch/group_kernel.h"

namespace ag::cuda {

// `driver` outlives the source, the source the kernels it made.
std::unique_ptr<KernelSource> MakeGeneratedSource(Driver& driver,
                                                  std::unique_ptr<Compiler> compiler);

}  // namespace ag::cuda
