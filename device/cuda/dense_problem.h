// A group as one strided batch of row-major products, D[i] = A[i] B[i], the form of matrix
// libraries. Batch axes of a product with one shared right side become rows. A convolution by one
// pixel in channels last is also such a product: pixels times channels, by weights; padded channels
// count as channels. Pure functions.
#pragma once

#include "device/cuda/group_tail.h"

namespace ag::cuda {

struct DenseProblem {
  int64_t batch = 1;
  int64_t m = 0, n = 0, k = 0;  // Of a convolution, k and n are channels in memory.
  // Elements from one product of the batch to the next; 0: shared by all.
  int64_t a_stride = 0, b_stride = 0, d_stride = 0;
  Edge a, b;                       // A port or a constant each.
  bool b_is_transposed = false;    // The graph's B is [n][k], like weights of convolutions.
  bool is_channels_last = false;   // The result and tensors of its size; else they are plain.
  DType stored = DType::kFloat32;  // Of A, B, D and addends: f32, f16 or bf16.
  Shape result;
  GroupTail tail;
};

// Returns the group's products. kUnimplemented: another layout, a type without kernels, nothing to
// compute, batch axes without a single stride (A broadcast along one axis and B along another), a
// convolution with a larger window, padding that would not stay zero or that an addend does not
// have.
StatusOr<DenseProblem> DenseProblemOf(const GroupContext& context);

}  // namespace ag::cuda
