// The element-wise steps after a product in an operation graph of cuDNN. Pure functions.
#pragma once

#include <limits>

#include "device/cuda/cudnn_graph.h"

namespace ag::cuda {

// A value of the chain: 0 is the product, i > 0 the result of step i-1.
using ChainValue = int;

struct PointwiseStep {
  cudnnPointwiseMode_t mode = CUDNN_POINTWISE_IDENTITY;
  ChainValue x = 0;
  // The second operand, for modes that have one: a value of the chain, a scalar, or a tensor.
  enum class Operand : uint8_t { kNone, kValue, kScalar, kAddend, kBias };
  Operand operand = Operand::kNone;
  ChainValue b = 0;
  float scalar = 0;
  // RELU_FWD only.
  double upper = std::numeric_limits<double>::infinity();
  double slope = 0;
};

// Appends the activation of the chain's last value, by the reference's formula: one step where
// cuDNN has a mode of that meaning, else a composition. kUnimplemented: the operator is not an
// activation.
Status AppendActivation(const Node& node, std::vector<PointwiseStep>* steps);

}  // namespace ag::cuda
