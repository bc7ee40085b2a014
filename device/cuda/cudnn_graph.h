// A group as an operation graph of cuDNN: the product, then always + addend + bias, then the
// activation. (In another order no precompiled engine takes the graph; the sum is the same.)
// Convolutions may be grouped, dilated and padded unevenly; dense groups are matmuls of rank 3.
//
// Tensors are what the arena holds, densely. In channels_last8 they are said with their padded
// channels, and weights and bias are padded with zeros alike, once: what cuDNN computes of the
// padding is zero again, unless an activation makes something else of zeros, which is refused. In
// other layouts channels that are no multiple of 8 (f16, bf16) or 4 (f32) make cuDNN copy: that is
// seen by the size of the workspace (cudnn_candidates.h) and priced by measurement.
//
// Everything but the tensors at the group's ports is f32: sums, bias add, activation.
#pragma once

#include "device/cuda/cudnn_descriptor.h"
#include "device/cuda/packed_constant.h"

namespace ag::cuda {

// What one tensor of the graph is when it runs.
struct CudnnBinding {
  enum class Kind : uint8_t { kInput, kOutput, kConstant, kScalar };
  int64_t uid = 0;
  Kind kind = Kind::kInput;
  int index = 0;     // Input port of the group, or of CudnnGraph::constants.
  float scalar = 0;  // kScalar: handed over by value.
};

// The product as matrices, for choosing tiles.
struct ProductShape {
  int64_t batch = 1;  // Groups of a convolution, batch of a matmul.
  int64_t m = 0;      // Pixels, rows.
  int64_t n = 0;      // Channels of the result per group, columns.
  int64_t k = 0;      // What is summed over.
};

struct CudnnGraph {
  std::vector<Descriptor> parts;  // What the graph refers to.
  Descriptor graph;
  std::string signature;  // Equal for graphs that differ in nothing but what their tensors hold.
  std::vector<CudnnBinding> bindings;
  std::vector<ConstantRecipe> constants;
  // Packed bytes of each tensor at a port or constant: as it is, with channels padded, as f32.
  struct TensorBytes {
    int64_t exact = 0;
    int64_t padded = 0;
    int64_t wide = 0;
  };
  std::vector<TensorBytes> tensor_bytes;
  ProductShape product;
  DType stored = DType::kFloat32;
};

// kUnimplemented: what cannot be said exactly in cuDNN's operations (see ReadTail, DenseProblemOf),
// weights that are no constant, blocked layouts, a type of no kernel, padded channels where they
// cannot be said (groups that are not one channel each, an addend that is not padded alike) or
// would not stay zero.
StatusOr<CudnnGraph> BuildCudnnGraph(const GroupContext& context);

}  // namespace ag::cuda
