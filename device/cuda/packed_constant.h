// Constants as kernels want them in device memory: rounded to the stored type, their axes in
// another order, several of them added up. Pure functions over host memory; f32 to f16 and bf16
// rounds to nearest even, and what is added is added in double and rounded once.
#pragma once

#include <vector>

#include "device/cuda/launch/group_kernel.h"

namespace ag::cuda {

struct ConstantRecipe {
  std::vector<Edge> sum;   // Added up. Each has as many elements as `shape`, or one.
  Shape shape;             // Of the result.
  std::vector<int> order;  // Axis order[i] is the i-th from outside; empty: as they are.
  DType stored = DType::kFloat32;
  bool operator==(const ConstantRecipe&) const = default;
};

// The bytes of one tensor of a float type as `stored`, with its axes in `order` (empty: as they
// are). kUnimplemented: `stored` is none of f32, f16 and bf16, or the tensor is of no float type.
StatusOr<std::vector<std::byte>> PackTensor(const Tensor& tensor, DType stored,
                                            const std::vector<int>& order);

// As PackTensor, for a recipe over the constants of a build.
StatusOr<std::vector<std::byte>> PackConstant(const ConstantRecipe& recipe, Constants& constants);

}  // namespace ag::cuda
