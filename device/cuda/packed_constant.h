// Constants in the form that libraries read from device memory: several of them summed (in double,
// rounded once), then packed as in launch/host_form.h. Pure functions.
#pragma once

#include <vector>

#include "device/cuda/launch/group_kernel.h"

namespace ag::cuda {

struct ConstantRecipe {
  std::vector<Edge> sum;   // Summed. Each has as many elements as `shape`, or one.
  Shape shape;             // Of the result.
  std::vector<int> order;  // Axis order[i] is the i-th from outside; empty: as they are.
  DType stored = DType::kFloat32;
  // The length of its axes in memory, with zeros behind its own elements; empty: as they are.
  std::vector<int64_t> padded;
  bool operator==(const ConstantRecipe&) const = default;
};

// Returns the bytes of a recipe over the constants of a build. kUnimplemented: `stored` is none of
// f32, f16 and bf16, or a constant has no float type.
StatusOr<std::vector<std::byte>> PackConstant(const ConstantRecipe& recipe, Constants& constants);

}  // namespace ag::cuda
