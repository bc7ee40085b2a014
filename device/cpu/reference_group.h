// Groups that no fast kernel takes, by the reference kernels: right for every type of plain layout,
// and slow.
#pragma once

#include <memory>

#include "device/cpu/kernel.h"

namespace ag::cpu {

inline constexpr const char* kReferenceKernel = "reference";

// Whether the reference kernels can run the group: plain layouts, and no opaque node.
bool IsReferenceGroup(const GroupContext& context);

// Makes the kernel. REQUIRES: IsReferenceGroup(context).
StatusOr<std::unique_ptr<Kernel>> MakeReferenceGroup(const GroupContext& context);

}  // namespace ag::cpu
