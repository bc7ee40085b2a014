#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/bytes.h"
#include "base/text.h"
#include "graph/onnx/export/export.h"
#include "graph/onnx/import/import.h"
#include "graph/onnx/origin.h"
#include "graph/onnx/testing/onnx_testing.h"
#include "graph/onnx/wire.h"
#include "graph/reference/evaluate.h"
#include "graph/testing/function_cases.h"
#include "graph/text_form.h"

namespace ag {
namespace {

OnnxOrigin OriginOf(int64_t opset) {
  OnnxOrigin origin;
  origin.opsets = {{"", opset}};
  origin.graph_name = "g";
  return origin;
}

struct Parsed {
  Graph graph;
  MemoryWeights weights;
};

void Parse(const char* text, Parsed& parsed) {
  StatusOr<Graph> graph = ParseGraph(text, &parsed.weights);
  ASSERT_TRUE(graph.ok()) << ToString(graph.status()) << "\n" << text;
  parsed.graph = *std::move(graph);
}

std::string OpsOf(const std::string& bytes) {
  const auto model = ParseModel(bytes, 10000);
  if (!model.ok()) return ToString(model.status());
  std::string ops;
  for (const OnnxNode& node : model->nodes) ops += (ops.empty() ? "" : " ") + node.op_type;
  return ops;
}

// The pieces together are the whole file. Large weights are not copied.
TEST(ExportPieces, MakeTheWholeFile) {
  Parsed parsed;
  Parse(R"(
    input x f32[8,256]
    w = const f32[256,256] seed 1
    b = const f32[256] seed 2
    v = const f32[256,128] seed 3
    output y = matmul(add(matmul(x, w), b), v)
  )",
        parsed);
  const OnnxOrigin origin = OriginOf(17);
  const auto whole = ExportOnnx(parsed.graph, origin, parsed.weights);
  ASSERT_TRUE(whole.ok()) << ToString(whole.status());
  std::string joined;
  std::vector<size_t> large;
  const auto take = [&](std::string_view piece) {
    joined += piece;
    if (piece.size() >= (64 << 10)) large.push_back(piece.size());
    return OkStatus();
  };
  EXPECT_EQ(ToString(ExportOnnx(parsed.graph, origin, parsed.weights, {}, take)), "OK");
  EXPECT_EQ(Sha256(joined), Sha256(*whole));
  std::sort(large.begin(), large.end());
  EXPECT_EQ(large, std::vector<size_t>({256 * 128 * 4, 256 * 256 * 4}));
}

TEST(ExportPieces, AnErrorOfTheSinkEndsIt) {
  Parsed parsed;
  Parse("input x f32[4,128]\nw = const f32[128,256] seed 1\noutput y = matmul(x, w)", parsed);
  for (int n = 0;; ++n) {
    int pieces = 0;
    const auto fail = [&](std::string_view) {
      return pieces++ == n ? Err(StatusCode::kResourceExhausted, "full at {}", n) : OkStatus();
    };
    const Status status = ExportOnnx(parsed.graph, OriginOf(17), parsed.weights, {}, fail);
    if (status.ok()) {
      EXPECT_EQ(n, pieces);
      EXPECT_GE(n, 2);
      return;
    }
    EXPECT_EQ(ToString(status), fmt::format("RESOURCE_EXHAUSTED: full at {}", n));
    EXPECT_EQ(pieces, n + 1);
  }
}

struct Case {
  const char* name;
  const char* text;
  int64_t opset;
  const char* ops;  // ONNX operators in order.
};

class ExportTest : public ::testing::TestWithParam<Case> {};

std::vector<Tensor> InputsOf(const Graph& graph) {
  std::vector<Tensor> inputs;
  for (const NodeId id : graph.inputs()) {
    inputs.push_back(RandomTensor(graph.node(id).outputs[0], 7 + id));
  }
  return inputs;
}

// The model has the expected operators, and its import computes the same values.
TEST_P(ExportTest, WritesAndComesBack) {
  const Case& c = GetParam();
  Parsed parsed;
  Parse(c.text, parsed);
  const auto bytes = ExportOnnx(parsed.graph, OriginOf(c.opset), parsed.weights);
  ASSERT_TRUE(bytes.ok()) << ToString(bytes.status());
  EXPECT_EQ(OpsOf(*bytes), c.ops);
  const auto blobs = testing::NewBlobs();
  const auto again = ImportOnnx(*bytes, {}, *blobs);
  ASSERT_TRUE(again.ok()) << ToString(again.status());
  ASSERT_EQ(again->graph.outputs().size(), parsed.graph.outputs().size());
  const std::vector<Tensor> inputs = InputsOf(parsed.graph);
  const auto before = Evaluate(parsed.graph, inputs, parsed.weights);
  const auto after = Evaluate(again->graph, inputs, BlobWeights(blobs));
  ASSERT_TRUE(before.ok() && after.ok()) << ToString(after.status());
  for (size_t i = 0; i < before->size(); ++i) {
    ASSERT_EQ((*before)[i].type(), (*after)[i].type());
    for (int64_t e = 0; e < (*before)[i].type().NumElements(); ++e) {
      const double x = (*before)[i].At(e), y = (*after)[i].At(e);
      ASSERT_NEAR(x, y, 1e-5 * std::max(1.0, std::fabs(x))) << c.name << " element " << e;
    }
    EXPECT_EQ(again->graph.outputs()[i].name, parsed.graph.outputs()[i].name);
  }
}

const Case kCases[] = {
    {"zero bias",
     "input x f32[1,2,4,4]\nw = const f32[3,2,1,1] seed 1\nb = const f32[3] {0,0,0}\n"
     "output y = conv(x, w, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1]",
     17, "Conv"},
    {"recipes fold",
     "input x f32[2,3]\nw = const f32[4,3] seed 1\n"
     "output y = matmul(x, transpose(w) perm=[1,0])",
     17, "MatMul"},
    {"gelu", "input x f32[8]\noutput y = gelu(x)", 17, "Div Erf Add Mul Mul"},
    {"gelu tanh", "input x f32[8]\noutput y = gelu(x) approximate=tanh", 17,
     "Pow Mul Add Mul Tanh Add Mul Mul"},
    {"swish", "input x f32[8]\noutput y = swish(x)", 17, "Sigmoid Mul"},
    {"hard swish 14", "input x f32[8]\noutput y = hard_swish(x)", 14, "HardSwish"},
    {"hard swish 13", "input x f32[8]\noutput y = hard_swish(x)", 13, "HardSigmoid Mul"},
    {"layer norm 17",
     "input x f32[2,8]\ns = const f32[8] seed 1\nb = const f32[8] seed 2\n"
     "output y = layer_norm(x, s, b) axis=1",
     17, "LayerNormalization"},
    {"layer norm 13",
     "input x f32[2,8]\ns = const f32[8] seed 1\nb = const f32[8] seed 2\n"
     "output y = layer_norm(x, s, b) axis=1",
     13, "ReduceMean Sub Pow ReduceMean Add Sqrt Div Mul Add"},
    {"rms norm",
     "input x f32[2,3,8]\ns = const f32[3,8] seed 1\n"
     "output y = rms_norm(x, s) axis=1",
     17, "Pow ReduceMean Add Sqrt Div Mul"},
    {"softmax 11", "input x f32[2,3,4]\noutput y = softmax(x) axis=1", 11,
     "Transpose Softmax Transpose"},
    {"softmax 13", "input x f32[2,3,4]\noutput y = softmax(x) axis=1", 13, "Softmax"},
    {"split 12", "input x f32[5]\np, q = split(x) axis=0 sizes=[2,3]\noutput a = p\noutput b = q",
     12, "Split"},
    {"split 13", "input x f32[5]\np, q = split(x) axis=0 sizes=[2,3]\noutput a = p\noutput b = q",
     13, "Split"},
    {"reduce sum 11", "input x f32[2,3]\noutput y = reduce_sum(x) axes=[1]", 11, "ReduceSum"},
    {"reduce sum 13", "input x f32[2,3]\noutput y = reduce_sum(x) axes=[1]", 13, "ReduceSum"},
    {"global pool", "input x f32[1,2,3,3]\noutput y = reduce_mean(x) axes=[2,3]", 17,
     "GlobalAveragePool"},
    {"resize 17", "input x f32[1,2,3,4]\noutput y = resize(x) sizes=[1,2,6,5] mode=linear", 17,
     "Resize"},
    {"resize 11",
     "input x f32[1,2,3,4]\ny = resize(x) sizes=[1,2,2,9] coordinate_transformation_mode=asymmetric"
     " nearest_mode=floor\noutput z = resize(y) sizes=[1,2,3,14] scales=[1,1,1,1,7,4,8,5]",
     11, "Resize Resize"},
    {"resize 13",
     "input x f32[5,4]\noutput y = resize(x) sizes=[6,6] scales=[13,10,8,5] mode=cubic"
     " exclude_outside=1 cubic_coeff_a=-0.5 coordinate_transformation_mode=pytorch_half_pixel",
     13, "Resize"},
    {"clip", "input x f32[8]\noutput y = clip(x) max=0.5", 17, "Clip"},
    {"slice, pad",
     "input x f32[2,6]\n"
     "y = slice(x) axes=[1] starts=[4] ends=[-7] steps=[-2]\n"
     "output z = pad(y) pads=[0,1,1,0] value=2",
     17, "Slice Pad"},
    {"an input is an output", "input x f32[2]\noutput y = x\noutput z = relu(x)", 17,
     "Relu Identity"},
    {"one value, two outputs", "input x f32[2]\nr = relu(x)\noutput y = r\noutput z = r", 17,
     "Relu Identity"},
    {"a constant is an output", "input x f32[2]\nc = const f32[2] {1, 2}\noutput y = c", 17,
     "Identity"},
};

std::string CaseName(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.name;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Table, ExportTest, ::testing::ValuesIn(kCases), CaseName);

// Every function comes back from the oldest and the newest opset with its values.
TEST(ExportFunctionTest, ComesBack) {
  for (const FunctionCase& c : FunctionCases()) {
    for (const int64_t opset : {11, 17}) {
      SCOPED_TRACE(fmt::format("{}, opset {}", c.name, opset));
      Parsed parsed;
      std::string text = StatementsOf(c, fmt::format("[{}]", c.x.size()));
      std::replace(text.begin(), text.end(), ';', '\n');
      Parse(text.c_str(), parsed);
      const auto bytes = ExportOnnx(parsed.graph, OriginOf(opset), parsed.weights);
      const OpInfo& info = Info(OpOf(c));
      if (opset < info.onnx_since && info.onnx_else.empty()) {
        EXPECT_EQ(Message(bytes.status()),
                  fmt::format("node {} ({}): opset {} has no {}", parsed.graph.size() - 1,
                              info.text_name, opset, info.onnx_name));
        continue;
      }
      ASSERT_TRUE(bytes.ok()) << ToString(bytes.status());
      const auto again = ImportOnnx(*bytes, {}, *testing::NewBlobs());
      ASSERT_TRUE(again.ok()) << ToString(again.status());
      EXPECT_EQ(again->graph.digest() == parsed.graph.digest(),
                opset >= info.onnx_since && !info.onnx_name.empty());
      std::vector<Tensor> inputs;
      for (const std::initializer_list<double> values : {c.x, c.y}) {
        if (values.size() == 0) continue;
        const Edge input{parsed.graph.inputs()[inputs.size()], 0};
        inputs.push_back(Tensor::FromDoubles(parsed.graph.type(input), values));
      }
      const auto outputs = Evaluate(again->graph, inputs, MemoryWeights());
      ASSERT_TRUE(outputs.ok()) << ToString(outputs.status());
      for (size_t i = 0; i < c.expected.size(); ++i) {
        const double want = c.expected.begin()[i], got = (*outputs)[0].At(static_cast<int64_t>(i));
        const bool same = want == got || (std::isnan(want) && std::isnan(got));
        EXPECT_TRUE(same || std::fabs(want - got) <= 1e-6 * std::max(1.0, std::fabs(want)))
            << "element " << i << ": " << got << ", expected " << want;
      }
    }
  }
}

TEST(ExportModelTest, KeepsOriginAndPlans) {
  Parsed parsed;
  Parse("input x f32[2]\noutput y = relu(x)", parsed);
  OnnxOrigin origin = OriginOf(13);
  origin.producer_name = "someone";
  origin.doc_string = "what it is";
  origin.metadata = {{"author", "a"}};
  const std::string plan("\0\1plan", 6);
  const auto bytes = ExportOnnx(parsed.graph, origin, parsed.weights, {.plans = {{"cpu", plan}}});
  ASSERT_TRUE(bytes.ok());
  auto again = ImportOnnx(*bytes, {}, *testing::NewBlobs());
  ASSERT_TRUE(again.ok());
  again->origin.names.clear();  // The graph above had none.
  again->origin.stated.clear();
  EXPECT_EQ(EncodeOrigin(again->origin), EncodeOrigin(origin));
  const std::vector<std::pair<std::string, std::string>> plans = {{"cpu", plan}};
  EXPECT_EQ(again->plans, plans);
  EXPECT_EQ(again->graph.digest(), parsed.graph.digest());
  const auto decoded = DecodeOrigin(EncodeOrigin(origin));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(EncodeOrigin(*decoded), EncodeOrigin(origin));
}

TEST(ExportModelTest, BrokenPlansAreAWarning) {
  OnnxModel model;
  model.origin = OriginOf(17);
  model.origin.metadata = {{"autograph.plan.cpu", "***"}};
  model.inputs = {{.name = "x", .data_type = 1, .has_shape = true, .dims = {{2}}}};
  model.outputs = {{.name = "y", .data_type = 1, .has_shape = true, .dims = {{2}}}};
  model.nodes = {{.op_type = "Relu", .inputs = {"x"}, .outputs = {"y"}}};
  const auto imported = ImportOnnx(*SerializeModel(model), {}, *testing::NewBlobs());
  ASSERT_TRUE(imported.ok()) << ToString(imported.status());
  ASSERT_EQ(imported->warnings.size(), 1u);
  EXPECT_TRUE(imported->warnings[0].starts_with("plan ignored: \"cpu\": "));
}

TEST(ExportModelTest, OpaqueNodesComeBackEqual) {
  const auto blobs = testing::NewBlobs();
  const std::string bytes = testing::ModelFromText(
      "g (float[2,3] x, int64 i) => (float[2,3] y)"
      "{ a = CumSum<exclusive = 1>(x, i) b = Hardmax(a) y = Relu(b) }");
  const auto imported = ImportOnnx(bytes, {}, *blobs);
  ASSERT_TRUE(imported.ok()) << ToString(imported.status());
  const auto exported = ExportOnnx(imported->graph, imported->origin, BlobWeights(blobs));
  ASSERT_TRUE(exported.ok()) << ToString(exported.status());
  EXPECT_EQ(OpsOf(*exported), "CumSum Hardmax Relu");
  const auto again = ImportOnnx(*exported, {}, *blobs);
  ASSERT_TRUE(again.ok()) << ToString(again.status());
  EXPECT_EQ(again->graph.digest(), imported->graph.digest());
}

// Quantized weights are constants for devices and rules, and stay as small as they came.
TEST(ExportModelTest, QuantizedWeightsStayQuantized) {
  const auto blobs = testing::NewBlobs();
  const std::string bytes(300 * 300, 7);
  OnnxModel model;
  model.origin.opsets = {{"", 13}};
  model.inputs = {{.name = "x", .data_type = 1, .has_shape = true, .dims = {{2}, {300}}}};
  model.outputs = {{.name = "y", .data_type = 1, .has_shape = true, .dims = {{2}, {300}}}};
  model.initializers = {{.name = "w", .data_type = 3, .dims = {300, 300}, .bytes = bytes},
                        {.name = "s", .data_type = 1, .bytes = {"\0\0\0\x3f", 4}}};
  model.nodes = {{.op_type = "DequantizeLinear", .inputs = {"w", "s"}, .outputs = {"f"}},
                 {.op_type = "MatMul", .inputs = {"x", "f"}, .outputs = {"y"}}};
  const auto imported = ImportOnnx(*SerializeModel(model), {}, *blobs);
  ASSERT_TRUE(imported.ok()) << ToString(imported.status());
  const Graph& graph = imported->graph;
  const Edge weights = graph.node(graph.outputs()[0].edge.node).inputs[1];
  EXPECT_TRUE(graph.is_constant(weights.node));
  EXPECT_EQ(Materialize(graph, weights, BlobWeights(blobs))->ToDoubles()[5], 3.5);
  const auto exported = ExportOnnx(graph, imported->origin, BlobWeights(blobs));
  ASSERT_TRUE(exported.ok()) << ToString(exported.status());
  EXPECT_EQ(OpsOf(*exported), "DequantizeLinear MatMul");
  EXPECT_LT(exported->size(), 100'000);
  EXPECT_EQ(ImportOnnx(*exported, {}, *blobs)->graph.digest(), graph.digest());
}

// What a rewrite leaves alone keeps its names; a new node is named after one that it replaces.
TEST(ExportModelTest, NamesOfTheModelAreKept) {
  const auto blobs = testing::NewBlobs();
  const auto weight = [](const char* name) {
    return OnnxTensor{
        .name = name, .data_type = 1, .dims = {2, 2}, .bytes = {"0123456789abcdef", 16}};
  };
  OnnxModel model;
  model.origin.opsets = {{"", 17}};
  model.inputs = {{.name = "x", .data_type = 1, .has_shape = true, .dims = {{2}, {2}}}};
  model.outputs = {{.name = "y", .data_type = 1, .has_shape = true, .dims = {{2}, {2}}}};
  model.initializers = {weight("layer.weight")};
  model.nodes = {
      {.op_type = "MatMul", .name = "/a", .inputs = {"x", "layer.weight"}, .outputs = {"/a_out"}},
      {.op_type = "Relu", .name = "/b", .inputs = {"/a_out"}, .outputs = {"relu_0"}},
      {.op_type = "Neg", .name = "/c", .inputs = {"relu_0"}, .outputs = {"/c_out"}},
      {.op_type = "Exp", .name = "/d", .inputs = {"/c_out"}, .outputs = {"y"}}};
  const auto imported = ImportOnnx(*SerializeModel(model), {}, *blobs);
  ASSERT_TRUE(imported.ok()) << ToString(imported.status());
  // exp(neg(r)) becomes 1 / exp(r).
  GraphBuilder builder(imported->graph);
  const Edge exp = imported->graph.outputs()[0].edge;
  const Edge neg = imported->graph.node(exp.node).inputs[0];
  const Edge relu = imported->graph.node(neg.node).inputs[0];
  const Edge made = *builder.Add1(OpKind::kExp, {relu});
  ASSERT_TRUE(builder.Replace(exp, *builder.Add1(OpKind::kReciprocal, {made})).ok());
  const Graph rewritten = *builder.Build();
  const auto exported =
      ExportOnnx(rewritten, imported->origin, BlobWeights(blobs), {.imported = &imported->graph});
  ASSERT_TRUE(exported.ok()) << ToString(exported.status());
  const auto again = ParseModel(*exported, 100);
  ASSERT_TRUE(again.ok());
  std::string text = again->initializers[0].name;
  for (const OnnxNode& node : again->nodes) {
    text += fmt::format(" {}:{}>{}", node.name, fmt::join(node.inputs, ","), node.outputs[0]);
  }
  EXPECT_EQ(text,
            "layer.weight /a:x,layer.weight>/a_out /b:/a_out>relu_0 "
            "/c/exp:relu_0>/c/exp_0 /c/reciprocal:/c/exp_0>y");
}

// Equal weights of two layers are one: what stands in the place of a layer is named after that.
TEST(ExportModelTest, LayersOfEqualWeightsAreToldApart) {
  const auto blobs = testing::NewBlobs();
  OnnxModel model;
  model.origin.opsets = {{"", 17}};
  model.inputs = {{.name = "x", .data_type = 1, .has_shape = true, .dims = {{2}, {2}}}};
  model.outputs = {{.name = "y", .data_type = 1, .has_shape = true, .dims = {{2}, {2}}}};
  model.initializers = {
      {.name = "w", .data_type = 1, .dims = {2, 2}, .bytes = {"0123456789abcdef", 16}},
      {.name = "v", .data_type = 1, .dims = {2, 2}, .bytes = {"fedcba9876543210", 16}}};
  model.nodes = {{.op_type = "MatMul", .name = "/a", .inputs = {"x", "w"}, .outputs = {"a"}},
                 {.op_type = "MatMul", .name = "/b", .inputs = {"a", "v"}, .outputs = {"b"}},
                 {.op_type = "MatMul", .name = "/c", .inputs = {"b", "w"}, .outputs = {"y"}}};
  const auto imported = ImportOnnx(*SerializeModel(model), {}, *blobs);
  ASSERT_TRUE(imported.ok()) << ToString(imported.status());
  GraphBuilder builder(imported->graph);
  const Edge c = imported->graph.outputs()[0].edge;
  const Edge b = imported->graph.node(c.node).inputs[0];
  const Edge a = imported->graph.node(b.node).inputs[0];
  for (const Edge& product : {a, c}) {
    const auto& operands = imported->graph.node(product.node).inputs;
    const Edge neg = *builder.Add1(OpKind::kNeg, {operands[0]});
    ASSERT_TRUE(builder.Replace(product, *builder.Add1(OpKind::kMul, {neg, operands[1]})).ok());
  }
  const auto exported = ExportOnnx(*builder.Build(), imported->origin, BlobWeights(blobs),
                                   {.imported = &imported->graph});
  ASSERT_TRUE(exported.ok()) << ToString(exported.status());
  const auto again = ParseModel(*exported, 100);
  ASSERT_TRUE(again.ok());
  std::vector<std::string> names;
  for (const OnnxNode& node : again->nodes) names.push_back(node.name);
  EXPECT_EQ(Join(names, " "), "/a/neg /a/mul /b /c/neg /c/mul");
}

// The oldest opset that is written is 11.
TEST(ExportModelTest, KeptNodesOfOldOpsetsTakeNewerForms) {
  const auto blobs = testing::NewBlobs();
  const std::string bytes = testing::ModelFromText(
      "g (float[2,3] x, int64[1,3] i, float[1,3] u) => (float[2,2] y, int64[2,2] at, int64[1,2] m)"
      "{ a = Scatter<axis = 0>(x, i, u) y, at = TopK<k = 2>(a) m = ArgMax(y) }",
      9);
  const auto imported = ImportOnnx(bytes, {}, *blobs);
  ASSERT_TRUE(imported.ok()) << ToString(imported.status());
  const auto exported = ExportOnnx(imported->graph, imported->origin, BlobWeights(blobs));
  ASSERT_TRUE(exported.ok()) << ToString(exported.status());
  EXPECT_EQ(OpsOf(*exported), "ScatterElements TopK ArgMax");
  const auto again = ImportOnnx(*exported, {}, *blobs);
  ASSERT_TRUE(again.ok()) << ToString(again.status());
  ASSERT_EQ(again->graph.outputs().size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const Graph &before = imported->graph, &after = again->graph;
    EXPECT_EQ(after.type(after.outputs()[i].edge), before.type(before.outputs()[i].edge));
  }
}

// Its places are half a pixel off by default since opset 16.
TEST(ExportModelTest, ARoiAlignIsNotRaisedToAnotherDefault) {
  EXPECT_TRUE(MeansTheSame("RoiAlign", 10, 11));
  EXPECT_TRUE(MeansTheSame("RoiAlign", 16, 17));
  EXPECT_FALSE(MeansTheSame("RoiAlign", 10, 16));
  EXPECT_FALSE(MeansTheSame("RoiAlign", 13, 17));
}

TEST(ExportModelTest, AKeptUpsampleBecomesAResize) {
  const auto blobs = testing::NewBlobs();
  const std::string bytes = testing::ModelFromText(
      "g (float[1,2] x, float[2] s) => (float[2,4] y) { y = Upsample(x, s) }", 9);
  const auto imported = ImportOnnx(bytes, {}, *blobs);
  ASSERT_TRUE(imported.ok()) << ToString(imported.status());
  const auto exported = ExportOnnx(imported->graph, imported->origin, BlobWeights(blobs));
  ASSERT_TRUE(exported.ok()) << ToString(exported.status());
  EXPECT_EQ(OpsOf(*exported), "Resize");
  const auto again = ImportOnnx(*exported, {}, *blobs);
  ASSERT_TRUE(again.ok()) << ToString(again.status());
  const std::vector<Tensor> inputs = {Tensor::FromFloats({1, 2}, std::vector<float>{1, 2}),
                                      Tensor::FromFloats({2}, std::vector<float>{2, 2})};
  const auto y = Evaluate(again->graph, inputs, BlobWeights(blobs));
  ASSERT_TRUE(y.ok()) << ToString(y.status());
  EXPECT_EQ((*y)[0].ToDoubles(), (std::vector<double>{1, 1, 2, 2, 1, 1, 2, 2}));
}

TEST(ExportModelTest, ConvModelComesBackEqual) {
  const auto blobs = testing::NewBlobs();
  const auto imported = ImportOnnx(testing::ConvModel(), {}, *blobs);
  ASSERT_TRUE(imported.ok()) << ToString(imported.status());
  const auto exported = ExportOnnx(imported->graph, imported->origin, BlobWeights(blobs));
  ASSERT_TRUE(exported.ok());
  const auto again = ImportOnnx(*exported, {}, *blobs);
  ASSERT_TRUE(again.ok()) << ToString(again.status());
  EXPECT_EQ(again->graph.digest(), imported->graph.digest());
  EXPECT_EQ(OpsOf(*exported), "Conv Relu MaxPool Conv GlobalAveragePool Reshape MatMul");
}

TEST(ExportModelTest, SymmetricResizesNeedANewerOpset) {
  Parsed parsed;
  Parse(
      "input x f32[3]\noutput y = resize(x) sizes=[4] mode=linear"
      " coordinate_transformation_mode=half_pixel_symmetric",
      parsed);
  EXPECT_EQ(ToString(ExportOnnx(parsed.graph, OriginOf(17), parsed.weights).status()),
            "UNIMPLEMENTED: node 1 (resize): opset 17 has no half_pixel_symmetric");
}

TEST(ExportModelTest, NewerOpsetsAreRefused) {
  Parsed parsed;
  Parse("input x f32[2]\noutput y = relu(x)", parsed);
  EXPECT_EQ(ToString(ExportOnnx(parsed.graph, OriginOf(29), parsed.weights).status()),
            "UNIMPLEMENTED: opset 29 is above 28");
}

}  // namespace
}  // namespace ag
