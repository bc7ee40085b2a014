#include "device/cuda/cudnn_pointwise.h"

namespace ag::cuda {
namespace {

using Operand = PointwiseStep::Operand;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Chain {
 public:
  explicit Chain(std::vector<PointwiseStep>* steps) : steps_(*steps) {}

  ChainValue last() const { return static_cast<ChainValue>(steps_.size()); }
  void Unary(cudnnPointwiseMode_t mode) { steps_.push_back({.mode = mode, .x = last()}); }
  void Scalar(cudnnPointwiseMode_t mode, double scalar) {
    steps_.push_back({.mode = mode,
                      .x = last(),
                      .operand = Operand::kScalar,
                      .scalar = static_cast<float>(scalar)});
  }
  void Times(ChainValue other) {
    steps_.push_back(
        {.mode = CUDNN_POINTWISE_MUL, .x = last(), .operand = Operand::kValue, .b = other});
  }
  void Relu(double upper, double slope) {
    steps_.push_back(
        {.mode = CUDNN_POINTWISE_RELU_FWD, .x = last(), .upper = upper, .slope = slope});
  }
  // Appends alpha x + beta, clipped to [0, 1].
  void HardSigmoid(double alpha, double beta) {
    Scalar(CUDNN_POINTWISE_MUL, alpha);
    Scalar(CUDNN_POINTWISE_ADD, beta);
    Relu(1, 0);
  }
  void Clip(double min, double max) {
    if (min == 0 && max > 0) return Relu(max, 0);
    if (min != -kInfinity) Scalar(CUDNN_POINTWISE_MAX, min);
    if (max != kInfinity) Scalar(CUDNN_POINTWISE_MIN, max);
    if (min == -kInfinity && max == kInfinity) Unary(CUDNN_POINTWISE_IDENTITY);
  }

 private:
  std::vector<PointwiseStep>& steps_;
};

}  // namespace

Status AppendActivation(const Node& node, std::vector<PointwiseStep>* steps) {
  Chain chain(steps);
  const ChainValue x = chain.last();
  if (node.op == OpKind::kRelu) {
    chain.Relu(kInfinity, 0);
  } else if (node.op == OpKind::kLeakyRelu) {
    chain.Relu(kInfinity, node.Float("alpha"));
  } else if (node.op == OpKind::kClip) {
    chain.Clip(node.Float("min"), node.Float("max"));
  } else if (node.op == OpKind::kSigmoid) {
    chain.Unary(CUDNN_POINTWISE_SIGMOID_FWD);
  } else if (node.op == OpKind::kTanh) {
    chain.Unary(CUDNN_POINTWISE_TANH_FWD);
  } else if (node.op == OpKind::kSwish) {
    chain.Unary(CUDNN_POINTWISE_SWISH_FWD);  // beta is 1 by default.
  } else if (node.op == OpKind::kGelu) {
    const bool none = node.attributes->String("approximate") == "none";
    chain.Unary(none ? CUDNN_POINTWISE_GELU_FWD : CUDNN_POINTWISE_GELU_APPROX_TANH_FWD);
  } else if (node.op == OpKind::kHardSigmoid) {
    chain.HardSigmoid(node.Float("alpha"), node.Float("beta"));
  } else if (node.op == OpKind::kHardSwish) {
    chain.HardSigmoid(1.0 / 6, 0.5);
    chain.Times(x);
  } else {
    return Err(StatusCode::kUnimplemented, "cuDNN: no exact form of {}", Info(node.op).name);
  }
  return OkStatus();
}

}  // namespace ag::cuda
