// What the kernels of ConvTranspose share: the node's sizes with explicit padding. Pure functions.
#pragma once

#include "device/cpu/kept.h"

namespace ag::cpu {

// Lists are by spatial axis, 1 to 3 of them.
struct TransposedForm {
  int64_t groups = 1;
  Ints strides, dilations;
  Ints begin;  // Padding; `end` is negative where the result has rows that no input reaches.
  Ints end;
  Shape x, w, y;  // w: input channels, output channels of a group, kernel.
};

// kUnimplemented: f32 in plain layout with constant weights is what the kernels have; or sizes do
// not fit, which the reference kernel reports.
StatusOr<TransposedForm> TransposedFormOf(const GroupContext& context, const KeptOperator& kept,
                                          const KeptOperands& operands);

}  // namespace ag::cpu
