// The order in which a group's kernels are tried: that of the estimates of this machine's spec.
// Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "device/cpu/kernel.h"

namespace ag::cpu {

// Sorts the kernels of a group whose first operator is a contraction by what the kernel families of
// `pattern` (SpecText, plan/fusion/kernel_estimate.h) are expected to take, the fastest first.
// Kernels without a family stay behind those with one, in their order.
void SortByEstimate(const GroupContext& context, std::string_view pattern,
                    std::vector<std::string>* names);

}  // namespace ag::cpu
