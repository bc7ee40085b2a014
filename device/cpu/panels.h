// The kernel "panels": a product of rows and a constant matrix by loops of our own
// (product_loops.h), for matrix products and for convolutions of one tap, in f32. What follows the
// product is computed on each tile while it is in registers or in the nearest cache; one number a
// channel in front of it, as of squeeze and excitation (Hu and others 2018, section 3), is a factor
// of the weights.
#pragma once

#include <string>

#include "device/cpu/kernel.h"

namespace ag::cpu {

inline constexpr std::string_view kPanelsName = "panels";

// Returns OK when the kernel takes the group, whose first node is a Conv or a MatMul, or a Mul in
// front of a Conv (the whole group then). Else
// kUnimplemented says what is missing.
Status CheckPanels(const GroupContext& context);

// Returns true when the device holds the weights, but not in this kernel's form, and the group
// prefers weights that are held. REQUIRES: CheckPanels.
bool PanelsPackHeldWeights(const GroupContext& context);

// Makes the kernel. REQUIRES: CheckPanels.
StatusOr<std::unique_ptr<Kernel>> MakePanels(const GroupContext& context, size_t* done);

}  // namespace ag::cpu
