// A dense group as one strided batch of row-major products, D[i] = A[i] B[i]: what both libraries
// take. Batch axes of a product with one shared right side become rows.
#pragma once

#include "device/cuda/group_tail.h"

namespace ag::cuda {

struct DenseProblem {
  int64_t batch = 1;
  int64_t m = 0, n = 0, k = 0;
  // Elements from one product of the batch to the next; 0: shared by all.
  int64_t a_stride = 0, b_stride = 0, d_stride = 0;
  Edge a, b;                       // A port or a constant each.
  DType stored = DType::kFloat32;  // Of A, B, D and what is added: f32, f16 or bf16.
  Shape result;
  GroupTail tail;
};

// kUnimplemented: a layout that is not plain, a type of no kernel, nothing to compute, or batch
// axes that no single stride walks through (A broadcast along one axis and B along another).
StatusOr<DenseProblem> DenseProblemOf(const GroupContext& context);

}  // namespace ag::cuda
