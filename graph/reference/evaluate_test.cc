#include "graph/reference/evaluate.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "graph/testing/random_graph.h"
#include "graph/text_form.h"

namespace ag {
namespace {

std::vector<Tensor> RandomInputs(const Graph& graph, uint64_t seed) {
  std::vector<Tensor> inputs;
  for (const NodeId id : graph.inputs()) {
    inputs.push_back(RandomTensor(graph.node(id).outputs[0], seed++));
  }
  return inputs;
}

TEST(EvaluateTest, TheResultDoesNotDependOnThreads) {
  MemoryWeights weights;
  const Graph graph = ParseGraph(
                          "input x f32[2,16,17,19]\n"
                          "y = conv(x, const f32[24,8,3,3] seed 1, const f32[24] seed 2) "
                          "strides=[1,2] pads=[1,1,0,1]"
                          " dilations=[1,1] group=2\n"
                          "m = reshape(y) shape=[2,24,-1]\n"
                          "output \"z\" = matmul(m, transpose(m) perm=[0,2,1])",
                          &weights)
                          .value();
  const std::vector<Tensor> inputs = RandomInputs(graph, 3);
  const Tensor one = Evaluate(graph, inputs, weights).value()[0];
  for (const int threads : {2, 3, 16}) {
    EXPECT_EQ(Evaluate(graph, inputs, weights, {.threads = threads}).value()[0].bytes(),
              one.bytes());
  }
}

// The definition of conv, written again without any packing.
double ConvAt(const Tensor& x, const Tensor& w, double bias, std::span<const int64_t> at) {
  double sum = 0;
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t j = 0; j < 3; ++j) {
        const int64_t row = at[2] * 2 + i * 2 - 1, column = at[3] + j - 2;
        if (row < 0 || row >= 11 || column < 0 || column >= 9) continue;
        sum += x.At(((at[0] * 3 + c) * 11 + row) * 9 + column) *
               w.At(((at[1] * 3 + c) * 3 + i) * 3 + j);
      }
    }
  }
  return sum + bias;
}

TEST(EvaluateTest, ConvIsItsDefinition) {
  const Graph graph =
      ParseGraph(
          "input x f64[2,3,11,9]\ninput w f64[5,3,3,3]\ninput b f64[5]\n"
          "output \"y\" = conv(x, w, b) strides=[2,1] pads=[1,2,0,1] dilations=[2,1]")
          .value();
  const std::vector<Tensor> inputs = RandomInputs(graph, 3);
  const Tensor y = Evaluate(graph, inputs, MemoryWeights()).value()[0];
  const Shape& shape = y.type().shape;
  ASSERT_EQ(shape, (Shape{2, 5, 4, 10}));
  int64_t i = 0;
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t m = 0; m < 5; ++m) {
      for (int64_t r = 0; r < 4; ++r) {
        for (int64_t c = 0; c < 10; ++c, ++i) {
          EXPECT_NEAR(y.At(i), ConvAt(inputs[0], inputs[1], inputs[2].At(m), Shape{n, m, r, c}),
                      1e-12);
        }
      }
    }
  }
}

TEST(EvaluateTest, EachNodeIsRounded) {
  MemoryWeights weights;
  const Graph graph = ParseGraph(
                          "c = add(const f32[1] {1}, const f32[1] {9.313225746154785e-10})\n"
                          "output \"y\" = sub(c, const f32[1] {1})",
                          &weights)
                          .value();
  const Edge sum = graph.node(graph.outputs()[0].edge.node).inputs[0];
  EXPECT_EQ(Materialize(graph, sum, weights).value().At(0), 1);
  EXPECT_EQ(Evaluate(graph, {}, weights).value()[0].At(0), 0);  // 1 + 2^-30 is 1 in f32.
}

// The buckets of T5's relative positions: in f32, log(2) / log(16) * 8 is exactly 2, and in
// doubles, with the same constants, a little less.
TEST(EvaluateTest, CastsSeeRoundedValues) {
  MemoryWeights weights;
  const Graph graph = ParseGraph(
                          "x = log(const f32[] {2})\n"
                          "y = mul(div(x, const f32[] {2.7725887}), const f32[] {8})\n"
                          "output \"z\" = cast(y) to=i64",
                          &weights)
                          .value();
  EXPECT_EQ(Evaluate(graph, {}, weights).value()[0].At(0), 2);
}

// Large values are computed a few rows at a time; no bit changes.
TEST(EvaluateTest, LargeConstantsComeByRows) {
  MemoryWeights weights;
  const Graph graph = *ParseGraph(
      "w = const f32[70,11,43] seed 1\n"
      "s = const f32[70,1,1] seed 2\n"
      "t = const f32[43] seed 3\n"
      "output a = mul(w, sqrt(mul(s, s)))\n"
      "output b = add(t, w)\n"
      "output c = mul(w, w)\n"
      "output d = add(mul(w, w), w)\n"
      "output e = mul(const f32[1,11,43] seed 4, s)\n"
      "output f = cast(w) to=i32\n",
      &weights);
  const std::vector<Tensor> whole = Evaluate(graph, {}, weights).value();
  for (size_t i = 0; i < whole.size(); ++i) {
    const Tensor tensor = Materialize(graph, graph.outputs()[i].edge, weights).value();
    EXPECT_EQ(tensor.type(), whole[i].type());
    EXPECT_EQ(tensor.bytes(), whole[i].bytes()) << graph.outputs()[i].name;
  }
}

// A model's weights are never in memory all at once.
TEST(EvaluateTest, ConstantsAreMadeForTheirFirstReader) {
  MemoryWeights weights;
  const Graph graph = *ParseGraph(
      "input x f32[2,2]\nw = const f32[2,2] seed 1\nv = const f32[2,2] seed 2\n"
      "output y = matmul(matmul(x, w), v)\n",
      &weights);
  std::vector<OpKind> order;
  const auto on_node = [&](NodeId id) {
    order.push_back(graph.node(id).op);
    return OkStatus();
  };
  ASSERT_TRUE(Evaluate(graph, RandomInputs(graph, 1), weights, {.on_node = on_node}).ok());
  ASSERT_EQ(order.size(), 5u) << "each once";
  const auto first = std::ranges::find(order, OpKind::kMatMul);
  EXPECT_EQ(std::count(order.begin(), first, OpKind::kConstant), 1);
}

TEST(EvaluateTest, SaysWhatIsWrong) {
  const Graph graph =
      ParseGraph("input x f32[100]\noutput \"y\" = add(x, const f32[100] {1})").value();
  const auto message = [&](const std::vector<Tensor>& inputs) {
    return ToString(Evaluate(graph, inputs, MemoryWeights()).status());
  };
  EXPECT_EQ(message({Tensor::Zeros({DType::kFloat16, {100}})}),
            "INVALID_ARGUMENT: input 'x': expected f32[100], got f16[100]");
  EXPECT_EQ(message(RandomInputs(graph, 1)).substr(0, 20), "NOT_FOUND: constant ");
  const auto on_node = [](NodeId id) {
    return id == 0 ? Err(StatusCode::kDeadlineExceeded, "stop") : OkStatus();
  };
  EXPECT_EQ(
      ToString(
          Evaluate(graph, RandomInputs(graph, 1), MemoryWeights(), {.on_node = on_node}).status()),
      "DEADLINE_EXCEEDED: stop");
}

TEST(EvaluateTest, ConstantsKeepWhatDoublesCannotHold) {
  MemoryWeights weights;
  const Graph graph =
      ParseGraph("output \"y\" = const i64[1] {9223372036854775807}", &weights).value();
  EXPECT_EQ(Materialize(graph, graph.outputs()[0].edge, weights).value().As<int64_t>()[0],
            INT64_MAX);
}

TEST(EvaluateTest, RandomGraphsRun) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    MemoryWeights weights;
    const Graph graph = RandomGraph(seed, &weights);
    const auto outputs = Evaluate(graph, RandomInputs(graph, seed), weights);
    ASSERT_TRUE(outputs.ok()) << "seed " << seed << ": " << ToString(outputs.status());
  }
}

}  // namespace
}  // namespace ag
