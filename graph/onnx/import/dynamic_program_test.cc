// Models of which a part runs node by node, because sizes depend on values.
#include "graph/onnx/import/dynamic_program.h"

#include <gtest/gtest.h>

#include "base/blobs.h"
#include "base/clock.h"
#include "graph/onnx/export/export.h"
#include "graph/onnx/import/import.h"
#include "graph/onnx/testing/onnx_testing.h"
#include "graph/reference/evaluate.h"
#include "graph/text_form.h"

namespace ag {
namespace {

// Every operator takes long on the reference kernels.
class SlowClock : public FakeClock {
 public:
  Nanos Now() override {
    SleepFor(std::chrono::milliseconds(1));
    return FakeClock::Now();
  }
};

// Makes each graph ready by evaluating it.
MakeReady ByEvaluating() {
  return [](const Graph& graph, const WeightSource& weights) -> StatusOr<RunGraph> {
    const auto kept = std::make_shared<MemoryWeights>();
    for (const Node& node : graph.nodes()) {
      if (node.op == OpKind::kOpaque) return Err(StatusCode::kUnimplemented, "opaque");
      if (node.op != OpKind::kConstant || !node.constant->inline_bytes.empty()) continue;
      AG_LET(const Tensor tensor, weights.Get(node.constant->digest, node.outputs[0]));
      (void)kept->Put(tensor);
    }
    return [graph, kept](std::span<const Tensor> inputs, std::span<Tensor> outputs) -> Status {
      AG_LET(std::vector<Tensor> results, Evaluate(graph, {inputs.begin(), inputs.end()}, *kept));
      std::ranges::move(results, outputs.begin());
      return OkStatus();
    };
  };
}

class DynamicProgramTest : public ::testing::Test {
 protected:
  ImportedModel Import(std::string_view text) {
    auto imported = ImportOnnx(testing::ModelFromText(text, 17), {}, *blobs_);
    EXPECT_TRUE(imported.ok()) << ToString(imported.status());
    return imported.ok() ? *std::move(imported) : ImportedModel();
  }

  // Returns the outputs as text: of the model, or of its export, which must be the same.
  std::string Run(const ImportedModel& model, const std::vector<Tensor>& tensors) {
    const std::vector<ModelValue> inputs(tensors.begin(), tensors.end());
    const BlobWeights weights(blobs_);
    const std::string text = TextOf(EvaluateModel(model.graph, model.origin, inputs, weights));
    CheckRepeatedRuns(model, tensors, text);
    const auto bytes = ExportOnnx(model.graph, model.origin, weights);
    EXPECT_TRUE(bytes.ok()) << ToString(bytes.status());
    if (!bytes.ok()) return text;
    const auto again = ImportOnnx(*bytes, {}, *blobs_);
    EXPECT_TRUE(again.ok()) << ToString(again.status());
    if (!again.ok()) return text;
    EXPECT_EQ(again->graph.digest(), model.graph.digest());
    EXPECT_EQ(TextOf(EvaluateModel(again->graph, again->origin, inputs, weights)), text);
    return text;
  }

  // Runs of one program that keep what they can give the same, with operators made ready or not.
  void CheckRepeatedRuns(const ImportedModel& model, const std::vector<Tensor>& inputs,
                         const std::string& text) {
    const BlobWeights weights(blobs_);
    const auto program = DynamicProgram::Of(model.origin, weights);
    const auto values = Evaluate(model.graph, inputs, weights);
    if (!program.ok() || !values.ok()) return;
    for (const bool ready : {false, true}) {
      SlowClock clock;
      RunMemory memory{{}, ReadyOperators(ready ? ByEvaluating() : MakeReady(), clock)};
      for (int run = 0; run < 3; ++run) {
        EXPECT_EQ(
            TextOf(program->Run(NamedValues(model.graph, inputs, *values), {.memory = &memory})),
            text)
            << "run " << run;
      }
      made_ready_ += memory.operators.ready();
    }
  }

  static std::string TextOf(const ModelValue& value) {
    if (value.kind != OnnxKind::kTensor) {
      std::vector<std::string> items;
      for (const ModelValue& item : value.items) items.push_back(TextOf(item));
      return fmt::format("({})", fmt::join(items, ", "));
    }
    std::string text = value.tensor.type().ToString() + ":";
    if (value.tensor.type().dtype == DType::kString) {
      for (const std::string_view word : value.tensor.Strings()) text += fmt::format(" '{}'", word);
      return text;
    }
    for (const double number : value.tensor.ToDoubles()) text += fmt::format(" {:g}", number);
    return text;
  }

  static std::string TextOf(const StatusOr<std::vector<ModelValue>>& outputs) {
    if (!outputs.ok()) return ToString(outputs.status());
    std::vector<std::string> texts;
    for (const ModelValue& value : *outputs) texts.push_back(TextOf(value));
    return fmt::format("{}", fmt::join(texts, "; "));
  }

  std::shared_ptr<BlobDir> blobs_ = testing::NewBlobs();
  int made_ready_ = 0;
};

Tensor FloatList(std::vector<float> values) {
  return Tensor::FromFloats({static_cast<int64_t>(values.size())}, values);
}

Tensor Bool(bool value) {
  Tensor tensor = Tensor::Zeros({DType::kBool, {}});
  tensor.Put(0, value ? 1 : 0);
  return tensor;
}

constexpr char kPositive[] =
    "g (float[4] x) => (int64[1,n] at, float[4] r, float[n] picked) <float[4] b = {1,1,1,1}> {"
    "r = Relu(x) n = NonZero(r) at = Identity(n) flat = Flatten<axis = 1>(at)"
    "one = Constant<value_ints = [-1]>() line = Reshape(flat, one)"
    "more = Add(r, b) picked = Gather(more, line) }";

TEST_F(DynamicProgramTest, StartsAtTheFirstNodeWhoseSizeDependsOnValues) {
  const ImportedModel model = Import(kPositive);
  EXPECT_EQ(FormatGraph(model.graph),
            FormatGraph(*ParseGraph("input x f32[4]\nr = relu(x)\noutput \"r\" = r\n"
                                    "output \"more\" = add(r, const f32[4] {1,1,1,1})")));
  EXPECT_EQ(model.origin.dynamic.nodes.size(), 5u);
  ASSERT_EQ(model.origin.dynamic.weights.size(), 1u);
  EXPECT_EQ(model.origin.dynamic.weights[0].name, "one");
  ASSERT_EQ(model.warnings.size(), 1u);
  EXPECT_EQ(model.warnings[0],
            "5 of 8 nodes run one by one behind the plan; node 1 (NonZero): the size of its output "
            "depends on values");
  EXPECT_EQ(Run(model, {FloatList({-1, 2, 0, 3})}), "i64[1,2]: 1 3; f32[4]: 0 2 0 3; f32[2]: 3 4");
  EXPECT_EQ(Run(model, {FloatList({-1, -2, 0, -3})}), "i64[1,0]:; f32[4]: 0 0 0 0; f32[0]:");
}

TEST_F(DynamicProgramTest, OneBranchIsTaken) {
  const ImportedModel model = Import(
      "g (float[2] x, bool c) => (float[k] y) { y = If<"
      "then_branch = t () => (float[2] a) { a = Relu(x) }, "
      "else_branch = e () => (float[4] b) { b = Concat<axis = 0>(x, x) }>(c) }");
  EXPECT_EQ(Run(model, {FloatList({-1, 2}), Bool(true)}), "f32[2]: 0 2");
  EXPECT_EQ(Run(model, {FloatList({-1, 2}), Bool(false)}), "f32[4]: -1 2 -1 2");
}

// Doubles v until its sum passes 100, or `count` times.
constexpr char kDoubling[] =
    "g (float[1] x, int64 count) => (float[1] y, float[n,1] all) <bool c = {1}> {"
    "y, all = Loop<body = b (int64 i, bool go, float[1] v) => (bool go2, float[1] w, float[1] s) {"
    "w = Add(v, v) limit = Constant<value_floats = [100.0]>() less = Less(w, limit)"
    "empty = Constant<value = int64[0] {}>() go2 = Reshape(less, empty) s = Identity(w) }"
    ">(count, c, x) }";

TEST_F(DynamicProgramTest, ALoopEndsWhenItsConditionSaysSo) {
  const ImportedModel model = Import(kDoubling);
  const auto count = [](int64_t value) { return Tensor::FromInts({}, {&value, 1}); };
  EXPECT_EQ(Run(model, {FloatList({30}), count(9)}), "f32[1]: 120; f32[2,1]: 60 120");
  EXPECT_EQ(Run(model, {FloatList({1}), count(3)}), "f32[1]: 8; f32[3,1]: 2 4 8");
  EXPECT_EQ(Run(model, {FloatList({1}), count(0)}), "f32[1]: 1; f32[0,1]:");
}

TEST_F(DynamicProgramTest, ALoopWithoutAnEndIsEnded) {
  const ImportedModel model = Import(
      "g (float[1] x, bool c) => (float[1] y) <int64 n = {9000000000000}> {"
      "y = Loop<body = b (int64 i, bool go, float[1] v)"
      "=> (bool go2, float[1] w) { go2 = Identity(c) w = Add(v, v) }>(n, c, x) }");
  const BlobWeights weights(blobs_);
  const auto program = DynamicProgram::Of(model.origin, weights);
  ASSERT_TRUE(program.ok()) << ToString(program.status());
  const auto outputs =
      program->Run({{"x", FloatList({1})}, {"c", Bool(true)}}, {.nodes_max = 1000});
  EXPECT_EQ(ToString(outputs.status()),
            "RESOURCE_EXHAUSTED: node 0 (Loop): body: 1000 nodes have run, those of subgraphs each "
            "time, and it has not ended: give the loop a count or a condition that ends");
}

TEST_F(DynamicProgramTest, FunctionsComeAlong) {
  const auto text = testing::ModelFromText(
      "<ir_version: 8, opset_import: [\"\" : 17, \"f\" : 1]>"
      "g (float[3] x) => (int64[1,n] y) { r = Relu(x) y = f.positions(r) }"
      "<domain: \"f\", opset_import: [\"\" : 17]> positions (a) => (b) { b = NonZero(a) }");
  const auto imported = ImportOnnx(text, {}, *blobs_);
  ASSERT_TRUE(imported.ok()) << ToString(imported.status());
  EXPECT_EQ(Run(*imported, {FloatList({1, 0, 2})}), "i64[1,2]: 0 2");
}

TEST_F(DynamicProgramTest, AModelOfDynamicNodesHandsAnInputThrough) {
  const ImportedModel model = Import("g (float[3] x) => (int64[1,n] y) { y = NonZero(x) }");
  EXPECT_EQ(FormatGraph(model.graph), "input x f32[3]\noutput \"x\" = x\n");
  EXPECT_EQ(Run(model, {FloatList({0, 5, 0})}), "i64[1,1]: 1");
}

// Names that export makes are not those of the kept nodes.
TEST_F(DynamicProgramTest, NamesStayApart) {
  const ImportedModel model = Import(
      "g (float[3] x) => (int64[1,n] y, float[3] z) <float[3] w = {1, 2, 3}> {"
      "a = Exp(x) b = Add(a, w) z = Neg(b) c = Abs(z)"
      "const_0 = NonZero(c) exp_1 = Add(const_0, const_0) y = Identity(exp_1) }");
  EXPECT_EQ(Run(model, {FloatList({0, 0, 0})}), "i64[1,3]: 0 2 4; f32[3]: -2 -3 -4");
}

TEST_F(DynamicProgramTest, AnOperatorWithoutAKernelIsNamed) {
  const auto imported = ImportOnnx(
      testing::ModelFromText("<ir_version: 8, opset_import: [\"\" : 17, \"q\" : 1]>"
                             "g (float[3] x) => (int64[1,n] y) { a = NonZero(x) y = q.Own(a) }"),
      {}, *blobs_);
  ASSERT_TRUE(imported.ok()) << ToString(imported.status());
  EXPECT_EQ(ToString(DynamicProgram::Of(imported->origin, BlobWeights(blobs_)).status()),
            "UNIMPLEMENTED: node 1 (Own): no kernel here runs it");
}

TEST_F(DynamicProgramTest, ErrorsOfARunNameTheNode) {
  const ImportedModel model =
      Import("g (float[3] x) => (float[3] y) { a = NonZero(x) b = Squeeze(a) y = Add(x, b) }");
  EXPECT_NE(Run(model, {FloatList({0, 1, 1})}).find("node 2 (Add): "), std::string::npos);
}

TEST_F(DynamicProgramTest, OperatorsOfALoopAreMadeReady) {
  const ImportedModel model = Import(kDoubling);
  const int64_t count = 9;
  EXPECT_EQ(Run(model, {FloatList({1}), Tensor::FromInts({}, {&count, 1})}).substr(0, 11),
            "f32[1]: 128");
  EXPECT_GT(made_ready_, 0);
}

// The weight is stored for the graph before the loop turns out to be none of it.
TEST_F(DynamicProgramTest, ALargeWeightOfALoopIsNoOutputOfTheGraph) {
  const std::vector<int> numbers(130 * 130, 1);
  const ImportedModel model = Import(fmt::format(
      "g (float[1,130] x, int64 count) => (float[1,130] y) <bool c = {{1}}, float[130,130] w = "
      "{{{}}}>"
      "{{ y = Loop<body = b (int64 i, bool go, float[1,130] v) => (bool go2, float[1,130] p) {{"
      "p = MatMul(v, w) limit = Constant<value_float = 99.0>()"
      "most = ReduceMax<keepdims = 0>(p) go2 = Less(most, limit) }}>(count, c, x) }}",
      fmt::join(numbers, ",")));
  const auto& weights = model.origin.dynamic.weights;
  EXPECT_EQ(std::ranges::count(weights, "w", &DynamicPart::Weight::name), 1);
  for (const GraphOutput& output : model.graph.outputs()) EXPECT_NE(output.name, "w");
}

// Weights, and what is made of them, are read in every iteration; what a loop carries is not.
TEST_F(DynamicProgramTest, ConstantsOfALoopAreComputedOnce) {
  const ImportedModel model = Import(
      "g (float[1,2] x, int64 count) => (float[1,2] y) <bool c = {1}, float[2,2] w = {0,1,2,0}> {"
      "y, w2 = Loop<body = b (int64 i, bool go, float[1,2] v, float[2,2] u)"
      "=> (bool go2, float[1,2] p, float[2,2] u2) {"
      "t = Transpose(u) p = MatMul(v, t) u2 = Identity(u) limit = Constant<value_float = 99.0>()"
      "most = ReduceMax<keepdims = 0>(p) go2 = Less(most, limit) }>(count, c, x, w) }");
  const int64_t counts[] = {0, 1, 2, 20};
  const char* texts[] = {"f32[1,2]: 1 3", "f32[1,2]: 3 2", "f32[1,2]: 2 6", "f32[1,2]: 64 192"};
  for (size_t i = 0; i < 4; ++i) {
    const Tensor x = Tensor::FromFloats({1, 2}, std::vector<float>{1, 3});
    EXPECT_EQ(Run(model, {x, Tensor::FromInts({}, {&counts[i], 1})}), texts[i]);
  }
}

}  // namespace
}  // namespace ag
