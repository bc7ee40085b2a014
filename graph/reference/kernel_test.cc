// At least one row for every operator of graph/ops.def, here or in graph/testing/function_cases.h:
// a graph in text form, and its result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "graph/reference/evaluate.h"
#include "graph/reference/evaluate_as.h"
#include "graph/testing/function_cases.h"
#include "graph/text_form.h"

namespace ag {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

enum Exactness { kExact, kRounded };  // kExact: rationals give the same numbers.

struct KernelCase {
  std::string name;
  std::string graph;  // The right side of `output y = ...`, or whole statements.
  std::vector<double> expected;
  Exactness exactness = kExact;
};

const KernelCase kCases[] = {
    {"relu of ints", "relu(const i32[2] {-3, 3})", {0, 3}},
    {"gelu", "gelu(const f64[2] {0, 1})", {0, 0.8413447460685429}, kRounded},
    {"gelu by tanh", "gelu(const f64[1] {1}) approximate=tanh", {0.8411919906082768}, kRounded},
    {"clip", "clip(const f32[3] {-1, 0.5, 9}) min=0 max=6", {0, 0.5, 6}},
    {"clip one bound", "clip(const f32[2] {-1, 9}) min=0", {0, 9}},
    {"clip keeps nan", "clip(const f32[1] {nan}) min=0 max=6", {kNan}, kRounded},
    {"cast truncates", "cast(const f32[3] {1.9, -1.9, 3}) to=i32", {1, -1, 3}},
    {"cast saturates", "cast(const f32[3] {300, -1, nan}) to=u8", {255, 0, 0}, kRounded},
    {"cast to bool", "cast(const f32[3] {0.5, 0, -2}) to=bool", {1, 0, 1}},
    {"cast rounds", "cast(cast(const f64[1] {0.1}) to=f16) to=f64", {0.0999755859375}, kRounded},

    {"add", "add(const f32[2] {1, 2}, const f32[2] {3, 4})", {4, 6}},
    {"add broadcasts",
     "add(const f32[2,1] {1, 2}, const f32[3] {10, 20, 30})",
     {11, 21, 31, 12, 22, 32}},
    {"add to scalar", "add(const f32 {1}, const f32[1,2] {3, 4})", {4, 5}},
    {"sub", "sub(const f32[2] {1, 2}, const f32[1] {3})", {-2, -1}},
    {"mul", "mul(const f32[2] {1, 2}, const f32[2] {3, 4})", {3, 8}},
    {"div", "div(const f32[2] {1, 3}, const f32[2] {2, 4})", {0.5, 0.75}},
    {"div of ints truncates", "div(const i64[3] {7, -7, 7}, const i64[3] {2, 2, -2})", {3, -3, -3}},
    {"pow", "pow(const f32[3] {3, 2, 5}, const f32[3] {2, -1, 0})", {9, 0.5, 1}},
    {"pow of ints wraps",
     "pow(const i32[4] {3, -3, 2, 2}, const i32[4] {40, 41, 31, 32})",
     {689956897, -2069870691, -2147483648.0, 0},
     kRounded},
    {"pow of ints below zero",
     "pow(const i64[5] {2, 1, -1, -1, 0}, const i64[5] {-1, -5, -3, -4, -2})",
     {0, 1, -1, 1, 0},
     kRounded},
    {"min", "min(const f32[2] {1, 5}, const f32[2] {3, 4})", {1, 4}},
    {"max", "max(const f32[2] {1, 5}, const f32[2] {3, 4})", {3, 5}},
    {"max keeps nan", "max(const f32[2] {nan, 5}, const f32[2] {3, nan})", {kNan, kNan}, kRounded},
    {"mod takes the divisor's sign",
     "mod(const i64[3] {-7, 7, 7}, const i64[3] {3, -3, 3})",
     {2, -2, 1}},
    {"mod by zero", "mod(const i64[2] {7, 0}, const i64[2] {0, 0})", {0, 0}, kRounded},
    {"fmod takes the dividend's sign",
     "mod(const f32[2] {-7, 7}, const f32[2] {3, -3}) fmod=1",
     {-1, 1}},
    {"equal", "equal(const i64[2] {1, 2}, const i64[1] {2})", {0, 1}},
    {"greater", "greater(const f32[3] {1, 2, 3}, const f32[1] {2})", {0, 0, 1}},
    {"less", "less(const f32[3] {1, 2, 3}, const f32[1] {2})", {1, 0, 0}},
    {"where", "where(const bool[2,1] {1, 0}, const f32[2] {1, 2}, const f32 {9})", {1, 2, 9, 9}},

    {"conv",
     "conv(const f32[1,1,3,3] {1,2,3,4,5,6,7,8,9}, const f32[1,1,2,2] {1,1,1,1},"
     " const f32[1] {0.5}) strides=[1,1] pads=[0,0,0,0] dilations=[1,1]",
     {12.5, 16.5, 24.5, 28.5}},
    {"conv 1d, pads, stride",
     "conv(const f32[1,1,4] {1,2,3,4}, const f32[1,1,3] {1,10,100}, const f32[1] {0})"
     " strides=[2] pads=[1,0] dilations=[1]",
     {210, 432}},
    {"conv dilated",
     "conv(const f32[1,1,5] {1,2,3,4,5}, const f32[1,1,2] {1,10}, const f32[1] {0})"
     " strides=[1] pads=[0,0] dilations=[3]",
     {41, 52}},
    {"conv in groups",
     "conv(const f32[1,4,1] {1,2,3,4}, const f32[2,2,1] {1,10,1,10}, const f32[2] {0,1})"
     " strides=[1] pads=[0,0] dilations=[1] group=2",
     {21, 44}},
    {"conv depthwise, two images",
     "conv(const f32[2,2,1] {1,2,3,4}, const f32[2,1,1] {5,7}, const f32[2] {0,0})"
     " strides=[1] pads=[0,0] dilations=[1] group=2",
     {5, 14, 15, 28}},
    {"matmul", "matmul(const f32[2,2] {1,2,3,4}, const f32[2,2] {5,6,7,8})", {19, 22, 43, 50}},
    {"matmul broadcasts batches",
     "matmul(const f32[2,1,2] {1,2,3,4}, const f32[2,1] {10,1})",
     {12, 34}},

    {"max_pool",
     "max_pool(const f32[1,1,2,3] {1,5,3,4,2,6}) kernel_shape=[2,2] strides=[1,1]"
     " pads=[0,0,0,0] dilations=[1,1]",
     {5, 6}},
    {"max_pool ignores padding",
     "max_pool(const f32[1,1,3] {-5,-6,-7}) kernel_shape=[3]"
     " strides=[2] pads=[1,1] dilations=[1]",
     {-5, -6}},
    {"max_pool dilated",
     "max_pool(const f32[1,1,4] {9,1,2,3}) kernel_shape=[2] strides=[1]"
     " pads=[0,0] dilations=[2]",
     {9, 3}},
    {"max_pool ceil_mode",
     "max_pool(const f32[1,1,4] {1,2,3,4}) kernel_shape=[3] strides=[2]"
     " pads=[0,0] dilations=[1] ceil_mode=1",
     {3, 4}},
    {"max_pool ceil_mode leaves windows in the padding out",
     "max_pool(const f32[1,1,3] {1,2,3}) kernel_shape=[2] strides=[3] pads=[1,1] dilations=[1]"
     " ceil_mode=1",
     {1, 3}},
    {"max_pool keeps nan",
     "max_pool(const f32[1,1,3] {1,nan,3}) kernel_shape=[2] strides=[1]"
     " pads=[0,0] dilations=[1]",
     {kNan, kNan},
     kRounded},
    {"average_pool",
     "average_pool(const f32[1,1,4] {1,2,3,5}) kernel_shape=[2] strides=[2]"
     " pads=[0,0] dilations=[1]",
     {1.5, 4}},
    {"average_pool leaves padding out",
     "average_pool(const f32[1,1,3] {2,4,6})"
     " kernel_shape=[2] strides=[1] pads=[1,1] dilations=[1]",
     {2, 3, 5, 6}},
    {"average_pool counts padding",
     "average_pool(const f32[1,1,3] {2,4,6}) kernel_shape=[2] strides=[1] pads=[1,1]"
     " dilations=[1] count_include_pad=1",
     {1, 3, 5, 3}},
    {"average_pool does not count what is beyond the padding",
     "average_pool(const f32[1,1,4] {1,2,3,4}) kernel_shape=[3] strides=[2] pads=[0,0]"
     " dilations=[1] ceil_mode=1 count_include_pad=1",
     {2, 3.5}},
    {"reduce_mean", "reduce_mean(const f32[2,2] {1,2,3,4}) axes=[1]", {1.5, 3.5}},
    {"reduce_mean of ints", "reduce_mean(const i64[2] {1,2}) axes=[0]", {1}},
    {"reduce_sum of all", "reduce_sum(const f32[2,2] {1,2,3,4}) axes=[1,0] keepdims=0", {10}},
    {"reduce_sum of nothing", "reduce_sum(const f32[2,0] {}) axes=[1]", {0, 0}},
    {"reduce_max", "reduce_max(const f32[2,2] {-1,-2,3,4}) axes=[1] keepdims=0", {-1, 4}},

    {"resize", "resize(const f32[2,2] {1,2,3,4}) sizes=[2,4]", {1, 1, 2, 2, 3, 3, 4, 4}},
    {"resize of ints", "resize(const i64[4] {1,2,3,4}) sizes=[2] nearest_mode=ceil", {2, 4}},
    {"resize by a scale",
     "resize(const f32[3] {1,2,3}) sizes=[4] scales=[3,2] nearest_mode=floor",
     {1, 1, 2, 2}},
    {"resize linear", "resize(const f32[2] {0,4}) sizes=[4] mode=linear", {0, 1, 3, 4}},
    {"resize linear of two axes",
     "resize(const f32[2,2] {0,4,8,12}) sizes=[1,4] mode=linear",
     {4, 5, 7, 8}},
    {"resize linear by corners",
     "resize(const f32[3] {0,2,8}) sizes=[5] mode=linear"
     " coordinate_transformation_mode=align_corners",
     {0, 1, 2, 5, 8}},
    {"resize cubic",
     "resize(const f64[4] {0,1,0,0}) sizes=[8] mode=cubic"
     " coordinate_transformation_mode=asymmetric",
     {0, 0.59375, 1, 0.59375, 0, -0.09375, 0, 0}},
    {"resize cubic with another a",
     "resize(const f64[2] {0,1}) sizes=[4] mode=cubic"
     " coordinate_transformation_mode=asymmetric cubic_coeff_a=-0.5",
     {0, 0.5, 1, 1.0625}},
    {"resize cubic from inside",
     "resize(const f64[2] {1,3}) sizes=[4] mode=cubic exclude_outside=1",
     {8.0 / 11, 1.458904109589041, 2.541095890410959, 36.0 / 11},
     kRounded},
    {"resize of nothing", "resize(const f32[0,2] {}) sizes=[0,3] mode=linear", {}},

    {"softmax",
     "softmax(const f64[1,2] {0, 0.6931471805599453}) axis=1",
     {1.0 / 3, 2.0 / 3},
     kRounded},
    {"softmax over an inner axis",
     "softmax(const f64[2,2] {0, 1000, 0, 1000}) axis=0",
     {0.5, 0.5, 0.5, 0.5},
     kRounded},
    {"batch_norm",
     "batch_norm(const f64[1,2,1] {3, 5}, const f64[2] {1,2}, const f64[2] {0,1},"
     " const f64[2] {1,1}, const f64[2] {4,16}) epsilon=0",
     {1, 3},
     kRounded},
    {"layer_norm",
     "layer_norm(const f64[2,2] {1, 3, 5, 5}, const f64[2] {1,10}, const f64[2] {0,1}) axis=1"
     " epsilon=0.0001",
     {-0.9999500037496876, 10.999500037496876, 0, 1},
     kRounded},
    {"rms_norm",
     "rms_norm(const f64[2,2] {1, 7, 0, 0}, const f64[2] {1,10}) axis=1 epsilon=11",
     {1.0 / 6, 70.0 / 6, 0, 0},
     kRounded},
    {"rms_norm over two axes",
     "rms_norm(const f64[1,2,2] {1, 1, 1, -1}, const f64[2,2] {1,2,3,4}) axis=1 epsilon=3",
     {0.5, 1, 1.5, -2},
     kRounded},

    {"concat", "concat(const f32[2,1] {1,2}, const f32[2,2] {3,4,5,6}) axis=1", {1, 3, 4, 2, 5, 6}},
    {"split",
     "a, b = split(const f32[2,3] {1,2,3,4,5,6}) axis=1 sizes=[1,2]\n"
     "output a\noutput b",
     {1, 4, 2, 3, 5, 6}},
    {"slice", "slice(const f32[4] {1,2,3,4}) axes=[0] starts=[1] ends=[3] steps=[1]", {2, 3}},
    {"slice clamps",
     "slice(const f32[4] {1,2,3,4}) axes=[0] starts=[-2]"
     " ends=[9223372036854775807] steps=[1]",
     {3, 4}},
    {"slice backwards",
     "slice(const f32[4] {1,2,3,4}) axes=[0] starts=[-1]"
     " ends=[-9223372036854775807] steps=[-2]",
     {4, 2}},
    {"slice of an inner axis",
     "slice(const f32[2,3] {1,2,3,4,5,6}) axes=[1] starts=[0] ends=[3] steps=[2]",
     {1, 3, 4, 6}},
    {"transpose", "transpose(const f32[2,3] {1,2,3,4,5,6}) perm=[1,0]", {1, 4, 2, 5, 3, 6}},
    {"reshape", "reshape(const f32[2,2] {1,2,3,4}) shape=[-1]", {1, 2, 3, 4}},
    {"expand", "expand(const f32[2,1] {1,2}) shape=[2,2,2]", {1, 1, 2, 2, 1, 1, 2, 2}},
    {"pad", "pad(const f32[1,2] {1,2}) pads=[1,0,0,1] value=9", {9, 9, 9, 1, 2, 9}},
    {"pad crops", "pad(const f32[3] {1,2,3}) pads=[-1,1]", {2, 3, 0}},
    {"pad reflects", "pad(const f32[3] {1,2,3}) pads=[2,1] mode=reflect", {3, 2, 1, 2, 3, 2}},
    {"pad by the edge", "pad(const f32[2] {1,2}) pads=[2,1] mode=edge", {1, 1, 1, 2, 2}},
    {"gather", "gather(const f32[3] {1,2,3}, const i64[2,1] {2,-3})", {3, 1}},
    {"gather of an inner axis", "gather(const f32[2,2] {1,2,3,4}, const i64 {1}) axis=1", {2, 4}},
};

StatusOr<Graph> GraphOf(const KernelCase& c, MemoryWeights* weights) {
  const bool whole = c.graph.find("output") != std::string::npos;
  return ParseGraph(whole ? c.graph : "output \"y\" = " + c.graph, weights);
}

void ExpectNear(const std::vector<double>& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(expected[i]) || std::isinf(expected[i])) {
      EXPECT_TRUE(std::isnan(expected[i]) ? std::isnan(got[i]) : got[i] == expected[i])
          << "element " << i << " is " << got[i];
    } else {
      EXPECT_NEAR(got[i], expected[i], 1e-12) << "element " << i;
    }
  }
}

template <class T>
ConstantValue<T> ConstantsOf(const Graph& graph, const MemoryWeights& weights) {
  return [&](NodeId id) -> StatusOr<Array<T>> {
    AG_LET(const Tensor tensor, Materialize(graph, {id, 0}, weights));
    return ArrayOf<T>(tensor.type().shape, tensor.ToDoubles());
  };
}

TEST(KernelTest, GivesTheExpectedValues) {
  for (const KernelCase& c : kCases) {
    SCOPED_TRACE(c.name);
    MemoryWeights weights;
    const StatusOr<Graph> graph = GraphOf(c, &weights);
    ASSERT_TRUE(graph.ok()) << ToString(graph.status());
    const auto outputs = Evaluate(*graph, {}, weights);
    ASSERT_TRUE(outputs.ok()) << ToString(outputs.status());
    std::vector<double> got;
    for (const Tensor& tensor : *outputs) {
      for (const double value : tensor.ToDoubles()) got.push_back(value);
    }
    ExpectNear(got, c.expected);
  }
}

TEST(KernelTest, RationalsGiveTheSameNumbers) {
  for (const KernelCase& c : kCases) {
    if (c.exactness != kExact) continue;
    SCOPED_TRACE(c.name);
    MemoryWeights weights;
    const StatusOr<Graph> graph = GraphOf(c, &weights);
    ASSERT_TRUE(graph.ok()) << ToString(graph.status());
    const auto outputs = EvaluateAs<Rational>(*graph, {}, ConstantsOf<Rational>(*graph, weights));
    ASSERT_TRUE(outputs.ok()) << ToString(outputs.status());
    size_t i = 0;
    for (const Array<Rational>& array : *outputs) {
      for (const Rational value : array.values) {
        ASSERT_LT(i, c.expected.size());
        EXPECT_TRUE(value == Scalar<Rational>::Of(c.expected[i])) << "element " << i;
        ++i;
      }
    }
    EXPECT_EQ(i, c.expected.size());
  }
}

TEST(KernelTest, EveryOperatorRunsInThePrimeField) {
  for (const KernelCase& c : kCases) {
    if (c.exactness != kExact) continue;
    SCOPED_TRACE(c.name);
    MemoryWeights weights;
    const StatusOr<Graph> graph = GraphOf(c, &weights);
    ASSERT_TRUE(graph.ok()) << ToString(graph.status());
    const auto outputs = EvaluateAs<Residue>(*graph, {}, ConstantsOf<Residue>(*graph, weights));
    EXPECT_TRUE(outputs.ok()) << ToString(outputs.status());
  }
}

TEST(KernelTest, EveryOperatorHasARow) {
  std::set<OpKind> seen = {OpKind::kInput, OpKind::kConstant, OpKind::kOpaque};
  for (const FunctionCase& c : FunctionCases()) seen.insert(OpOf(c));
  for (const KernelCase& c : kCases) {
    const StatusOr<Graph> graph = GraphOf(c, nullptr);
    ASSERT_TRUE(graph.ok()) << c.name << ": " << ToString(graph.status());
    for (const Node& node : graph->nodes()) seen.insert(node.op);
  }
  for (const OpInfo& info : AllOps()) {
    EXPECT_TRUE(seen.contains(info.kind))
        << info.name << " has no row in graph/reference/kernel_test.cc";
  }
}

// Returns the case's graph over doubles, and its operands of elements `places`.
StatusOr<Graph> GraphOfFunction(const FunctionCase& c, const std::vector<size_t>& places,
                                std::vector<std::vector<double>>* operands) {
  for (const std::initializer_list<double> values : {c.x, c.y}) {
    if (values.size() == 0) continue;
    operands->emplace_back();
    for (const size_t i : places) operands->back().push_back(values.begin()[i]);
  }
  std::string text = StatementsOf(c, fmt::format("[{}]", places.size()));
  for (size_t at = 0; (at = text.find("f32[", at)) != text.npos;) text.replace(at, 3, "f64");
  std::replace(text.begin(), text.end(), ';', '\n');
  return ParseGraph(text);
}

TEST(KernelTest, FunctionsGiveTheExpectedValues) {
  for (const FunctionCase& c : FunctionCases()) {
    SCOPED_TRACE(c.name);
    std::vector<size_t> places(c.x.size());
    std::iota(places.begin(), places.end(), 0);
    std::vector<std::vector<double>> operands;
    const StatusOr<Graph> graph = GraphOfFunction(c, places, &operands);
    ASSERT_TRUE(graph.ok()) << ToString(graph.status());
    std::vector<Tensor> inputs;
    for (const std::vector<double>& values : operands) {
      const Edge input{graph->inputs()[inputs.size()], 0};
      inputs.push_back(Tensor::FromDoubles(graph->type(input), values));
    }
    const auto outputs = Evaluate(*graph, inputs, MemoryWeights());
    ASSERT_TRUE(outputs.ok()) << ToString(outputs.status());
    ExpectNear((*outputs)[0].ToDoubles(), c.expected);
  }
}

// Exact numbers compute what the operator table says, and give poison for nothing that is finite.
TEST(KernelTest, FunctionsOfExactNumbers) {
  for (const FunctionCase& c : FunctionCases()) {
    SCOPED_TRACE(c.name);
    std::vector<size_t> places;
    for (size_t i = 0; i < c.x.size(); ++i) {
      if (std::isfinite(c.x.begin()[i]) && std::isfinite(c.expected.begin()[i]))
        places.push_back(i);
    }
    std::vector<std::vector<double>> operands;
    const StatusOr<Graph> graph = GraphOfFunction(c, places, &operands);
    ASSERT_TRUE(graph.ok()) << ToString(graph.status());
    std::vector<Array<Rational>> rationals;
    std::vector<Array<Residue>> residues;
    const Shape shape{static_cast<int64_t>(places.size())};
    for (const std::vector<double>& values : operands) {
      rationals.push_back(ArrayOf<Rational>(shape, values));
      residues.push_back(ArrayOf<Residue>(shape, values));
    }
    const auto field = EvaluateAs<Residue>(*graph, residues, {});
    EXPECT_TRUE(field.ok()) << ToString(field.status());
    const auto exact = EvaluateAs<Rational>(*graph, rationals, {});
    ASSERT_TRUE(exact.ok()) << ToString(exact.status());
    if (!Has(OpOf(c), kArithmetic) && !Has(OpOf(c), kOrdered)) continue;
    for (size_t i = 0; i < places.size(); ++i) {
      EXPECT_TRUE((*exact)[0].values[i] == Rational(c.expected.begin()[places[i]]))
          << "element " << i;
    }
  }
}

TEST(KernelTest, ErrorsSayWhatIsWrong) {
  MemoryWeights weights;
  const auto message = [&](const std::string& text) {
    const StatusOr<Graph> graph = ParseGraph(text, &weights);
    EXPECT_TRUE(graph.ok()) << ToString(graph.status());
    return ToString(Evaluate(*graph, {}, weights).status());
  };
  EXPECT_EQ(message("output \"y\" = gather(const f32[2] {1,2}, const i64[1] {2})"),
            "OUT_OF_RANGE: gather: index 2 is outside [-2, 2)");
  EXPECT_EQ(message("output \"y\" = opaque(const f32 {1}) -> f32"),
            "UNIMPLEMENTED: operator : optimize keeps it as it is, but nothing here can run it");
  EXPECT_EQ(message("input x f32[2]\noutput x"), "INVALID_ARGUMENT: expected 1 inputs, got 0");
}

}  // namespace
}  // namespace ag
