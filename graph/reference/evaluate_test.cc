#include "graph/reference/evaluate.h"

#include <fmt/format.h>
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

TEST(EvaluateTest, TransposesKeepTheBytesOfFloats) {
  for (const char* type : {"f16", "bf16", "f32", "f64"}) {
    const Graph graph =
        *ParseGraph(fmt::format("input x {}[3,4,5]\noutput y = transpose(x) perm=[2,0,1]\n"
                                "output z = transpose(x) perm=[0,1,2]\n",
                                type));
    Tensor x = RandomInputs(graph, 5)[0];
    std::ranges::fill(x.Mutable<char>().first(static_cast<size_t>(SizeOf(x.type().dtype))), '\xff');
    const std::vector<Tensor> results = *Evaluate(graph, {x}, MemoryWeights());
    const auto size = static_cast<size_t>(SizeOf(x.type().dtype));
    for (size_t i = 0; i < 60; ++i) {  // (i, j, k) of x is (k, i, j) of y.
      const size_t to = i % 5 * 12 + i / 5;
      ASSERT_EQ(results[0].bytes().substr(to * size, size), x.bytes().substr(i * size, size));
    }
    EXPECT_EQ(results[1].bytes(), x.bytes()) << type;
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

// Returns the operator's values for two vectors of integers.
template <class T>
std::vector<T> OfIntegers(DType dtype, std::string_view op, std::vector<T> x, std::vector<T> y) {
  const Graph graph =
      ParseGraph(fmt::format("input x {0}[{1}]\ninput y {0}[{1}]\noutput \"z\" = {2}",
                             DTypeName(dtype), x.size(), op))
          .value();
  const auto tensor = [&](const std::vector<T>& values) {
    return Tensor::FromBytes(
        {dtype, {static_cast<int64_t>(values.size())}},
        {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
  };
  const Tensor z = Evaluate(graph, {tensor(x), tensor(y)}, MemoryWeights()).value()[0];
  return {z.As<T>().begin(), z.As<T>().end()};
}

// What no double holds, and what wraps.
TEST(EvaluateTest, IntegersAreExact) {
  using I64 = std::vector<int64_t>;
  using U64 = std::vector<uint64_t>;
  constexpr int64_t kBig = (int64_t{1} << 53) + 1;
  const auto i64 = [](std::string_view op, I64 x, I64 y) {
    return OfIntegers<int64_t>(DType::kInt64, op, std::move(x), std::move(y));
  };
  EXPECT_EQ(i64("add(x, y)", {kBig, INT64_MAX}, {2, 1}), (I64{kBig + 2, INT64_MIN}));
  EXPECT_EQ(i64("sub(x, y)", {kBig, INT64_MIN}, {1, 1}), (I64{kBig - 1, INT64_MAX}));
  EXPECT_EQ(i64("mul(x, y)", {kBig, int64_t{1} << 62}, {3, 4}), (I64{3 * kBig, 0}));
  EXPECT_EQ(i64("div(x, y)", {-kBig, INT64_MIN, 5}, {2, -1, 0}), (I64{-kBig / 2, INT64_MIN, 0}));
  EXPECT_EQ(i64("mod(x, y)", {kBig, -kBig}, {kBig - 2, kBig - 2}), (I64{2, kBig - 4}));
  EXPECT_EQ(i64("max(x, y)", {kBig}, {kBig - 1}), I64{kBig});
  EXPECT_EQ(i64("where(less(y, x), x, y)", {kBig}, {kBig - 1}), I64{kBig});
  EXPECT_EQ(i64("reduce_sum(add(x, y)) axes=[0] keepdims=1", {kBig, kBig, -1}, {0, 0, 0}),
            I64{2 * kBig - 1});
  EXPECT_EQ(i64("abs(neg(x))", {-kBig}, {0}), I64{kBig});
  EXPECT_EQ(i64("cast(cast(x) to=f64) to=i64", {kBig}, {0}), I64{kBig - 1});  // Rounds to even.
  EXPECT_EQ(i64("cast(cast(x) to=i8) to=i64", {300}, {0}), I64{44});
  // As a double it would lie in the middle of two floats, and its last bit says which is nearer.
  constexpr int64_t kFloatStep = int64_t{1} << 39;
  constexpr int64_t kAboveMiddle = (int64_t{1} << 62) + kFloatStep / 2 + 1;
  EXPECT_EQ(i64("cast(cast(x) to=f32) to=i64", {kAboveMiddle}, {0}),
            I64{(int64_t{1} << 62) + kFloatStep});
  EXPECT_EQ(i64("reduce_mean(x) axes=[0] keepdims=1", {INT64_MAX, INT64_MAX, 5}, {0, 0, 0}),
            I64{1});
  EXPECT_EQ(i64("reduce_mean(x) axes=[0] keepdims=1", {kBig, kBig, -3 * kBig}, {0, 0, 0}),
            I64{-kBig / 3});
  EXPECT_EQ(i64("clip(x) min=-1e+30 max=1e+30", {INT64_MIN, INT64_MAX}, {0, 0}),
            (I64{INT64_MIN, INT64_MAX}));
  EXPECT_EQ(OfIntegers<int8_t>(DType::kInt8, "clip(x) min=300", {-1}, {0}),
            std::vector<int8_t>{127});
  EXPECT_EQ(OfIntegers<uint8_t>(DType::kUInt8, "pad(x) pads=[1,0] value=300", {3}, {0}),
            (std::vector<uint8_t>{255, 3}));
  EXPECT_EQ(OfIntegers<uint64_t>(DType::kUInt64, "mul(x, y)", {UINT64_MAX}, {UINT64_MAX}), U64{1});
  EXPECT_EQ(OfIntegers<uint64_t>(DType::kUInt64, "div(x, y)", {UINT64_MAX}, {3}),
            U64{UINT64_MAX / 3});
  EXPECT_EQ(OfIntegers<int32_t>(DType::kInt32, "mul(x, y)", {1 << 30}, {6}),
            std::vector<int32_t>{INT32_MIN});
  EXPECT_EQ(OfIntegers<uint8_t>(DType::kUInt8, "sub(x, y)", {3}, {5}), std::vector<uint8_t>{254});
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
