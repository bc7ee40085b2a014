// A group as an operation graph of cuDNN: the product, then always + addend + bias, then the
// activation. (In another order no precompiled engine takes the graph; the sum is the same.)
// Convolutions may be grouped, dilated and padded unevenly; dense groups are matmuls of rank 3.
// Pure functions.
//
// Tensors have the arena's bytes, densely. In channels_last8 they are described with their padded
// channels, and weights and bias are padded with zeros once: so cuDNN computes zero in the padding
// again, unless an activation maps zero to something else, which is refused. In other layouts cuDNN
// copies channels that are no multiple of 8 (f16, bf16) or 4 (f32): the size of the workspace shows
// it (cudnn_candidates.h), and measurement decides.
//
// Everything but the tensors at the group's ports is f32: sums, bias add, activation.
#pragma once

#include "device/cuda/cudnn_descriptor.h"
#include "device/cuda/packed_constant.h"

namespace ag::cuda {

// The memory of one tensor of the graph when it runs.
struct CudnnBinding {
  enum class Kind : uint8_t { kInput, kOutput, kConstant, kScalar };
  int64_t uid = 0;
  Kind kind = Kind::kInput;
  int index = 0;     // Input port of the group, or of CudnnGraph::constants.
  float scalar = 0;  // kScalar: passed by value.
};

// The product as matrices, for choosing tiles.
struct ProductShape {
  int64_t batch = 1;  // Groups of a convolution, batch of a matmul.
  int64_t m = 0;      // Pixels, rows.
  int64_t n = 0;      // Channels of the result per group, columns.
  int64_t k = 0;      // Summed elements.
};

struct CudnnGraph {
  std::vector<Descriptor> parts;  // The descriptors that the graph refers to.
  Descriptor graph;
  std::string signature;  // Equal for graphs that differ only in their tensors' contents.
  std::vector<CudnnBinding> bindings;
  std::vector<ConstantRecipe> constants;
  // Packed bytes of each tensor at a port or constant: exact, with channels padded, and as f32.
  struct TensorBytes {
    int64_t exact = 0;
    int64_t padded = 0;
    int64_t wide = 0;
  };
  std::vector<TensorBytes> tensor_bytes;
  ProductShape product;
  bool is_matmul = false;   // A matrix product, no convolution.
  int64_t pixel_bytes = 0;  // Of a convolution's image; 0: it is plain.
  DType stored = DType::kFloat32;
};

// Returns the graph. kUnimplemented: a group that cuDNN's operations cannot express exactly (see
// ReadTail, DenseProblemOf), weights that are not constant, blocked layouts, a type without
// kernels, or padded channels that cannot be expressed (groups that are not one channel each, an
// addend with other padding) or would not stay zero.
StatusOr<CudnnGraph> BuildCudnnGraph(const GroupContext& context);

}  // namespace ag::cuda
