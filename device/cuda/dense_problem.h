// A group as one strided batch of row-major products, D[i] = A[i] B[i]: what matrix libraries take.
// Batch axes of a product with one shared right side become rows. A convolution by one pixel in
// channels last is such a product too: pixels times channels, by weights; padded channels count as
// channels.
#pragma once

#include "device/cuda/group_tail.h"

namespace ag::cuda {

struct DenseProblem {
  int64_t batch = 1;
  int64_t m = 0, n = 0, k = 0;  // Of a convolution k and n are channels in memory.
  // Elements from one product of the batch to the next; 0: shared by all.
  int64_t a_stride = 0, b_stride = 0, d_stride = 0;
  Edge a, b;                       // A port or a constant each.
  bool b_is_transposed = false;    // The graph's B is [n][k], as weights of convolutions are.
  bool is_channels_last = false;   // The result and what is as large; else they are plain.
  DType stored = DType::kFloat32;  // Of A, B, D and what is added: f32, f16 or bf16.
  Shape result;
  GroupTail tail;
};

// kUnimplemented: another layout, a type of no kernel, nothing to compute, batch axes that no
// single stride walks through (A broadcast along one axis and B along another), a convolution that
// looks beyond its pixel, padding that would not stay zero or that an addend does not have.
StatusOr<DenseProblem> DenseProblemOf(const GroupContext& context);

}  // namespace ag::cuda
