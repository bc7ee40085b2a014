#include "device/cuda/cudnn_graph.h"

#include <gtest/gtest.h>

#include "device/cuda/cudnn_pointwise.h"
#include "device/cuda/testing/testing.h"

namespace ag::cuda {
namespace {

// Returns "uid kind index", one per tensor.
std::string Bindings(const CudnnGraph& graph) {
  static constexpr const char* kKinds[] = {"in", "out", "const", "scalar"};
  std::string said;
  for (const CudnnBinding& b : graph.bindings) {
    said += fmt::format("{}{} {}", said.empty() ? "" : ", ", kKinds[static_cast<int>(b.kind)],
                        b.kind == CudnnBinding::Kind::kScalar ? fmt::format("{}", b.scalar)
                                                              : fmt::format("{}", b.index));
  }
  return said;
}

constexpr std::string_view kResidual = R"(
input x f32[1,64,56,56]
input r f32[1,64,56,56]
w = const f32[64,64,3,3] seed 1
b = const f32[64] seed 2
s = const f32[64,1,1] seed 3
output y = relu(add(conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1], r))
)";

TEST(CudnnGraph, OfAConvolutionWithAResidual) {
  const TextGroup group(kResidual);
  const StatusOr<CudnnGraph> graph = BuildCudnnGraph(group.context());
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Bindings(*graph), "in 0, const 0, out 0, in 1, const 1");
  // Weights have the image's order, channels last.
  EXPECT_EQ(graph->constants[0].order, (std::vector<int>{0, 2, 3, 1}));
  EXPECT_EQ(graph->constants[0].stored, DType::kFloat16);
  EXPECT_EQ(graph->constants[1].shape, (Shape{64}));
  EXPECT_EQ(graph->product.m, 3136);
  EXPECT_EQ(graph->product.n, 64);
  EXPECT_EQ(graph->product.k, 576);
  EXPECT_EQ(graph->tensor_bytes[0].exact, 401'408);
}

// Addend and result are padded to 24 channels, the image to 48; weights and bias likewise.
constexpr std::string_view kBroken = R"(
input x f32[1,42,14,14]
input r f32[1,22,14,14]
w = const f32[22,42,3,3] seed 1
b = const f32[22] seed 2
output y = relu(add(conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1], r))
)";

TEST(CudnnGraph, SaysPaddedChannelsAsChannels) {
  const TextGroup group(kBroken);
  EXPECT_EQ(group.group.outputs[0].layout, Layout::kChannelsLast8);
  const StatusOr<CudnnGraph> graph = BuildCudnnGraph(group.context());
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Bindings(*graph), "in 0, const 0, out 0, in 1, const 1");
  EXPECT_EQ(graph->constants[0].shape, (Shape{22, 42, 3, 3}));
  EXPECT_EQ(graph->constants[0].padded, (std::vector<int64_t>{24, 48, 3, 3}));
  EXPECT_EQ(graph->constants[1].padded, std::vector<int64_t>{24});
  EXPECT_EQ(graph->product.n, 24);
  EXPECT_EQ(graph->product.k, 48 * 9);
  for (const CudnnGraph::TensorBytes& bytes : graph->tensor_bytes) {
    EXPECT_EQ(bytes.exact, bytes.padded);  // Nothing is left for cuDNN to pad.
  }
  EXPECT_EQ(graph->tensor_bytes[0].exact, 48 * 14 * 14 * 2);
}

TEST(CudnnGraph, PadsDepthwiseConvolutionsByGroups) {
  TextGroup group(R"(
input x f32[1,42,14,14]
w = const f32[42,1,3,3] seed 1
b = const f32[42] seed 2
output y = conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1] group=42
)");
  group.group.inputs[0].layout = group.group.outputs[0].layout = Layout::kChannelsLast8;
  const StatusOr<CudnnGraph> graph = BuildCudnnGraph(group.context());
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->constants[0].padded, (std::vector<int64_t>{48, 1, 3, 3}));
  group.group.outputs[0].layout = Layout::kChannelsLast;
  EXPECT_EQ(ToString(BuildCudnnGraph(group.context()).status()),
            "UNIMPLEMENTED: Conv: 42 groups of padded channels, 48 to 42");
}

TEST(CudnnGraph, RefusesPaddingThatWouldBeWrong) {
  TextGroup mixed(kBroken);
  mixed.group.inputs[1].layout = Layout::kChannelsLast;
  EXPECT_EQ(ToString(BuildCudnnGraph(mixed.context()).status()),
            "UNIMPLEMENTED: Conv: an addend in layout channels_last, the result in channels_last8");
  const struct {
    std::string_view attributes;
    std::string_view activation;
    std::string_view message;
  } cases[] = {
      {"group=1", "sigmoid(c)", "UNIMPLEMENTED: Conv: Sigmoid makes no zeros of padding"},
      {"group=1", "clip(c) min=1 max=6", "UNIMPLEMENTED: Conv: Clip makes no zeros of padding"},
      {"group=1", "hard_sigmoid(c)", "UNIMPLEMENTED: Conv: HardSigmoid makes no zeros of padding"},
      {"group=1", "clip(c) min=0 max=6", "OK"},
      {"group=1", "gelu(c)", "OK"},
      {"group=2", "relu(c)", "UNIMPLEMENTED: Conv: 2 groups of padded channels, 48 to 48"},
  };
  for (const auto& c : cases) {
    TextGroup group(fmt::format(R"(
input x f32[1,42,14,14]
w = const f32[42,{},1,1] seed 1
b = const f32[42] seed 2
c = conv(x, w, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1] {}
output y = {}
)",
                                c.attributes == "group=1" ? 42 : 21, c.attributes, c.activation));
    group.group.inputs[0].layout = group.group.outputs[0].layout = Layout::kChannelsLast8;
    EXPECT_EQ(ToString(BuildCudnnGraph(group.context()).status()), c.message) << c.activation;
  }
}

TEST(CudnnGraph, VectorsAreFoldedIntoTheBias) {
  const TextGroup group(R"(
input x f32[1,8,14,14]
w = const f32[16,4,3,3] seed 1
b = const f32[16] seed 2
s = const f32[16,1,1] seed 3
output y = add(conv(x, w, b) strides=[2,2] pads=[0,1,1,0] dilations=[1,1] group=2, s)
)");
  const StatusOr<CudnnGraph> graph = BuildCudnnGraph(group.context());
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Bindings(*graph), "in 0, const 0, out 0, const 1");
  EXPECT_EQ(graph->constants[1].sum.size(), 2u);
  EXPECT_EQ(graph->product.batch, 2);
}

// Every activation of the spec's patterns has an exact form; scalars are passed by value.
TEST(CudnnGraph, EveryActivationHasAForm) {
  const struct {
    std::string_view activation;
    std::vector<cudnnPointwiseMode_t> modes;
    std::string_view scalars;
  } cases[] = {
      {"relu(c)", {CUDNN_POINTWISE_RELU_FWD}, ""},
      {"leaky_relu(c) alpha=0.1", {CUDNN_POINTWISE_RELU_FWD}, ""},
      {"clip(c) min=0 max=6", {CUDNN_POINTWISE_RELU_FWD}, ""},
      {"clip(c) min=-1 max=1", {CUDNN_POINTWISE_MAX, CUDNN_POINTWISE_MIN}, ", scalar -1, scalar 1"},
      {"clip(c) max=2", {CUDNN_POINTWISE_MIN}, ", scalar 2"},
      {"sigmoid(c)", {CUDNN_POINTWISE_SIGMOID_FWD}, ""},
      {"tanh(c)", {CUDNN_POINTWISE_TANH_FWD}, ""},
      {"swish(c)", {CUDNN_POINTWISE_SWISH_FWD}, ""},
      {"gelu(c)", {CUDNN_POINTWISE_GELU_FWD}, ""},
      {"gelu(c) approximate=\"tanh\"", {CUDNN_POINTWISE_GELU_APPROX_TANH_FWD}, ""},
      {"hard_sigmoid(c) alpha=0.25 beta=0.5",
       {CUDNN_POINTWISE_MUL, CUDNN_POINTWISE_ADD, CUDNN_POINTWISE_RELU_FWD},
       ", scalar 0.25, scalar 0.5"},
      {"hard_swish(c)",
       {CUDNN_POINTWISE_MUL, CUDNN_POINTWISE_ADD, CUDNN_POINTWISE_RELU_FWD, CUDNN_POINTWISE_MUL},
       ", scalar 0.16666667, scalar 0.5"},
  };
  for (const auto& c : cases) {
    const TextGroup group(fmt::format(R"(
input x f32[1,8,14,14]
w = const f32[16,8,1,1] seed 1
b = const f32[16] seed 2
c = conv(x, w, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1]
output y = {}
)",
                                      c.activation));
    const StatusOr<CudnnGraph> graph = BuildCudnnGraph(group.context());
    ASSERT_TRUE(graph.ok()) << graph.status() << c.activation;
    EXPECT_EQ(Bindings(*graph), "in 0, const 0, out 0, const 1" + std::string(c.scalars));
    std::vector<PointwiseStep> steps;
    ASSERT_TRUE(AppendActivation(group.context().node(1), &steps).ok());
    std::vector<cudnnPointwiseMode_t> modes;
    for (const PointwiseStep& step : steps) modes.push_back(step.mode);
    EXPECT_EQ(modes, c.modes) << c.activation;
  }
}

TEST(CudnnGraph, OfADenseGroup) {
  const TextGroup group(R"(
input x f32[1,128,768]
input r f32[1,128,768]
w = const f32[768,768] seed 1
b = const f32[768] seed 2
output y = add(add(matmul(x, w), b), r)
)");
  const StatusOr<CudnnGraph> graph = BuildCudnnGraph(group.context());
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Bindings(*graph), "in 0, const 0, out 0, in 1, const 1");
  const TextGroup bare(R"(
input q f32[12,128,64]
input k f32[12,64,128]
output y = matmul(q, k)
)");
  const StatusOr<CudnnGraph> product = BuildCudnnGraph(bare.context());
  ASSERT_TRUE(product.ok()) << product.status();
  EXPECT_EQ(Bindings(*product), "in 0, in 1, out 0");
}

TEST(CudnnGraph, WhatItCannotSayIsRefused) {
  const struct {
    std::string_view text;
    std::string_view message;
  } cases[] = {
      {R"(
input x f32[1,8,14,14]
input w f32[16,8,1,1]
b = const f32[16] seed 2
output y = conv(x, w, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1]
)",
       "UNIMPLEMENTED: Conv: weights are no constant"},
      {R"(
input x f32[4,4]
output y = softmax(x) axis=1
)",
       "UNIMPLEMENTED: cuDNN: no kernel for a softmax group"},
  };
  for (const auto& c : cases) {
    const TextGroup group(c.text);
    EXPECT_EQ(ToString(BuildCudnnGraph(group.context()).status()), c.message) << c.text;
  }
}

}  // namespace
}  // namespace ag::cuda
