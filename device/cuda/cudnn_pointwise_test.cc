// Computes the steps of every activation on numbers and compares them with the reference kernels.
#include "device/cuda/cudnn_pointwise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "device/cuda/testing/testing.h"
#include "graph/reference/evaluate.h"

namespace ag::cuda {
namespace {

// cuDNN's documented meaning of each mode.
double Apply(const PointwiseStep& step, double x, double b) {
  switch (step.mode) {
    case CUDNN_POINTWISE_ADD:
      return x + b;
    case CUDNN_POINTWISE_MUL:
      return x * b;
    case CUDNN_POINTWISE_MAX:
      return std::max(x, b);
    case CUDNN_POINTWISE_MIN:
      return std::min(x, b);
    case CUDNN_POINTWISE_RELU_FWD:
      return std::min(x < 0 ? step.slope * x : x, step.upper);
    case CUDNN_POINTWISE_SIGMOID_FWD:
      return 1 / (1 + std::exp(-x));
    case CUDNN_POINTWISE_TANH_FWD:
      return std::tanh(x);
    case CUDNN_POINTWISE_SWISH_FWD:
      return x / (1 + std::exp(-x));
    case CUDNN_POINTWISE_GELU_FWD:
      return 0.5 * x * (1 + std::erf(x * std::sqrt(0.5)));
    case CUDNN_POINTWISE_GELU_APPROX_TANH_FWD:
      return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    case CUDNN_POINTWISE_IDENTITY:
      return x;
    default:
      ADD_FAILURE() << "mode " << step.mode;
      return 0;
  }
}

double CarryOut(const std::vector<PointwiseStep>& steps, double x) {
  std::vector<double> values{x};
  for (const PointwiseStep& step : steps) {
    const bool has_value = step.operand == PointwiseStep::Operand::kValue;
    values.push_back(Apply(step, values[step.x], has_value ? values[step.b] : step.scalar));
  }
  return values.back();
}

TEST(CudnnPointwise, StepsComputeWhatTheReferenceDoes) {
  for (const std::string activation :
       {"relu(x)", "leaky_relu(x) alpha=0.1", "clip(x) min=0 max=6", "clip(x) min=-1 max=1",
        "clip(x) min=0.5", "clip(x) max=2", "clip(x)", "clip(x) min=0 max=-1", "sigmoid(x)",
        "tanh(x)", "swish(x)", "gelu(x)", "gelu(x) approximate=\"tanh\"", "hard_sigmoid(x)",
        "hard_sigmoid(x) alpha=0.25 beta=0.1", "hard_swish(x)"}) {
    MemoryWeights weights;
    const Graph graph = *ParseGraph("input x f32[161]\noutput y = " + activation + "\n", &weights);
    std::vector<float> inputs;
    for (int i = 0; i < 161; ++i) inputs.push_back(static_cast<float>(i - 80) / 10);
    const Tensor x = Tensor::FromFloats({161}, inputs);
    const std::vector<Tensor> expected = *Evaluate(graph, {{x}}, weights);
    std::vector<PointwiseStep> steps;
    ASSERT_TRUE(AppendActivation(graph.node(graph.outputs()[0].edge.node), &steps).ok());
    for (int i = 0; i < 161; ++i) {
      EXPECT_NEAR(CarryOut(steps, inputs[i]), expected[0].At(i), 2e-6) << activation << inputs[i];
    }
  }
}

TEST(CudnnPointwise, OtherOperatorsAreRefused) {
  MemoryWeights weights;
  const Graph graph = *ParseGraph("input x f32[4]\noutput y = exp(x)\n", &weights);
  std::vector<PointwiseStep> steps;
  EXPECT_EQ(ToString(AppendActivation(graph.node(graph.outputs()[0].edge.node), &steps)),
            "UNIMPLEMENTED: cuDNN: no exact form of Exp");
}

}  // namespace
}  // namespace ag::cuda
