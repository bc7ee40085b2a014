// Hostile bytes: each input gives a graph or an error, quickly and within the limits.
#include <gtest/gtest.h>

#include "base/random.h"
#include "graph/onnx/fields.h"
#include "graph/onnx/import/import.h"
#include "graph/onnx/imported_model.h"
#include "graph/onnx/testing/onnx_testing.h"
#include "graph/onnx/wire.h"

namespace ag {
namespace {

class NoSink : public WeightSink {
 public:
  StatusOr<Digest> Put(std::string_view bytes) override { return Sha256(bytes); }
};

Status Try(std::string_view bytes) {
  NoSink sink;
  ImportOptions options;
  options.limits.tensor_bytes_max = 64 << 20;
  options.limits.total_bytes_max = 256 << 20;
  return ImportOnnx(bytes, options, sink).status();
}

OnnxModel ReluModel() {
  OnnxModel model;
  model.origin.opsets = {{"", 17}};
  model.inputs = {{.name = "x", .data_type = 1, .has_shape = true, .dims = {{2}}}};
  model.outputs = {{.name = "y", .data_type = 1, .has_shape = true, .dims = {{2}}}};
  model.nodes = {{.op_type = "Add", .inputs = {"x", "w"}, .outputs = {"y"}}};
  model.initializers = {{.name = "w", .data_type = 1, .dims = {2}, .bytes = {"12345678", 8}}};
  return model;
}

std::string ErrorOf(const OnnxModel& model) {
  const auto bytes = SerializeModel(model);
  return bytes.ok() ? ToString(Try(*bytes)) : ToString(bytes.status());
}

TEST(HostileTest, StridesOfAKeptNode) {
  OnnxModel model = ReluModel();
  model.inputs[0].dims = {{1}, {1}, {2}};
  model.initializers[0].dims = {1, 1, 2};
  model.nodes[0].op_type = "ConvTranspose";
  model.nodes[0].attributes = {{.name = "strides", .type = OnnxAttributeType::kInts, .ints = {0}}};
  EXPECT_EQ(ErrorOf(model), "INVALID_ARGUMENT: node 0 (ConvTranspose): strides: 0 is below 1");
}

TEST(HostileTest, Tensors) {
  EXPECT_EQ(ErrorOf(ReluModel()), "OK");
  OnnxModel model = ReluModel();
  model.initializers[0].dims = {3};
  EXPECT_EQ(ErrorOf(model),
            "INVALID_ARGUMENT: tensor \"w\": f32[3] needs 12 bytes, the model has 8");
  model.initializers[0].dims = {-2};
  EXPECT_EQ(ErrorOf(model), "INVALID_ARGUMENT: tensor \"w\": negative size in f32[-2]");
  model.initializers[0].dims = {int64_t{1} << 62, 4};
  EXPECT_EQ(ErrorOf(model),
            "INVALID_ARGUMENT: tensor \"w\": f32[4611686018427387904,4] has more "
            "than 2^40 elements");
  model.initializers[0].dims = {2};
  model.initializers[0].data_type = 14;
  EXPECT_EQ(ErrorOf(model),
            "UNIMPLEMENTED: tensor \"w\": element type 14 (COMPLEX64) of ONNX is not supported");
  model.initializers[0].data_type = 9;
  model.initializers[0].dims = {8};
  EXPECT_EQ(ErrorOf(model), "INVALID_ARGUMENT: tensor \"w\": a bool is neither 0 nor 1");
}

TEST(HostileTest, ExternalDataIsNeverOpened) {
  for (const char* location : {"weights.bin", "/etc/passwd", "../x", ""}) {
    EXPECT_EQ(ToString(Try(testing::ExternalDataModel({.location = location}))),
              fmt::format("INVALID_ARGUMENT: tensor \"w\" has its data in another file, \"{}\", "
                          "and only the model's own bytes came: give the model by its path with "
                          "that file beside it, or save it with its weights inside",
                          location));
  }
}

TEST(HostileTest, NotAModel) {
  EXPECT_EQ(ToString(Try("")), "INVALID_ARGUMENT: the model is empty");
  EXPECT_EQ(ToString(Try("hello, this is text")), "INVALID_ARGUMENT: not ONNX: this is text");
  EXPECT_EQ(ToString(Try("\x89PNG\r\n\x1a\n")),
            "INVALID_ARGUMENT: not ONNX: this is a PNG picture");
  EXPECT_EQ(ToString(Try("\x01hello")),
            "INVALID_ARGUMENT: not ONNX, or cut short: no whole field at byte 0 of 6");
  const std::string model = testing::ConvModel();
  for (size_t size = 0; size < model.size(); ++size) {
    EXPECT_FALSE(Try(model.substr(0, size)).ok()) << size;
  }
}

// What fuzzing found: each once read or wrote where nothing was, or computed what has no value.
TEST(HostileTest, NodesThatAreWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"g (int64[0,2,3,3] x) => (int64 y) { y = DepthToSpace<blocksize = 4294967296>(x) }",
       "node 0 (DepthToSpace): blocksize 4294967296 does not fit [0,2,3,3]"},
      {"g (float[2] x) => (float[2] y) { y = Pad(x) }", "node 0 (Pad): input 1 is missing"},
      {"g (float[2,2] x) => (float[2,2] y) <string w = {\"a\"}> { y = Gemm<beta = 2.0>(x, x, w) }",
       "node 0 (Gemm): cannot compute on strings"},
      {"g (float[2] x) => (float[2] y) <int64[2] v = {7, 9}, string[2] i = {\"a\", \"b\"}> {"
       "n = Gather(v, i) y = Relu(x) }",
       "node 0 (Gather): strings are mixed with numbers"},
      {"g (float[2] x) => (float[2] y) <bool[2] c = {1, 0}, int64[2] v = {7, 9}, "
       "string[2] s = {\"a\", \"b\"}> { n = Where(c, v, s) y = Relu(x) }",
       "node 0 (Where): strings are mixed with numbers"},
      {"g (float[2] x) => (float[2] y) <int64[1] s = {2}> {"
       "c = ConstantOfShape<value = string[1] {\"abc\"}>(s) y = Relu(x) }",
       "node 0 (ConstantOfShape): value: expected a number, got string[1]"},
      {"g (float[2,2] x) => (float[2,2] y) { y = Einsum<equation = \"ij,jk->ik\">(x, ) }",
       "node 0 (Einsum): expected 2 inputs, got 1"},
      {"g (float[1,1,2,2] x, float w) => (float[1,1,2,2] y) { y = ConvTranspose(x, w) }",
       "node 0 (ConvTranspose): the ranks of f32[1,1,2,2] and f32[] do not fit"},
      {"g (float[1,1] x, float r) => (float[1,1] y) { y = MaxRoiPool<pooled_shape = [1]>(x, r) }",
       "node 0 (MaxRoiPool): the ranks of f32[1,1] and f32[] do not fit"},
      {"g (float[1,1,2] x, int64 i) => (float y) { y = MaxUnpool<kernel_shape = [2]>(x, i) }",
       "node 0 (MaxUnpool): the ranks of f32[1,1,2] and i64[] do not fit"},
      {"g (float[2] x) => (float[2] y) <string[2] s = {\"a\", \"b\"}, int64[1] i = {0}, "
       "int64[1] u = {9}> { n = ScatterElements(s, i, u) y = Relu(x) }",
       "node 0 (ScatterElements): strings are mixed with numbers"},
      {"g (float[3,4] x, int64[2,3] i) => (float[2] y) { y = GatherND(x, i) }",
       "node 0 (GatherND): indices i64[2,3] with batch_dims 0 do not fit f32[3,4]"},
      {"g (uint8[2] x) => (uint8[2] y) { y = ReduceL2<axes = [88]>(x) }",
       "node 0 (ReduceL2): axis 88 is outside [-1, 1)"},
      {"g (bool x) => (bool y) { y, m = LayerNormalization(x, x) }",
       "node 0 (LayerNormalization): axis -1 is outside [0, 0)"},
      {"g (float[2,2] x) => (float[2,2] y) <float[1,2,2] v = {1, 2, 3, 4}, "
       "float[2] s = {1, 2}> { n = InstanceNormalization(v, s, ) y = Relu(x) }",
       "node 0 (InstanceNormalization): operator \"InstanceNormalization\": input 2 is missing"},
      {"g (float[2,2] x) => (float[2,2] y) <int64[2] v = {1, 2}> {"
       "n = Einsum<equation = \"i,i->i\">(v, ) y = Relu(x) }",
       "node 0 (Einsum): expected 2 inputs, got 1"},
      {"g (float[2] x) => (float[2] y) <float n = {1e30}, bool c = {1}> { y = Loop<body = b (int64 "
       "i, "
       "bool go, float[2] v) => (bool go2, float[2] w) { go2 = Identity(go) w = Relu(v) }>(n, c, "
       "x) "
       "}",
       "node 0 (Loop): input 0: expected i64 or i32, got f32[]"},
      {"g (float[2] x) => (float[2] y) <float n = {1e30}> { s = SequenceConstruct(x)"
       "y = SequenceAt(s, n) }",
       "node 1 (SequenceAt): input 1: expected i64 or i32, got f32[]"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_EQ(ToString(Try(testing::ModelFromText(text))),
              fmt::format("INVALID_ARGUMENT: {}", message));
  }
  EXPECT_EQ(
      Try(testing::ModelFromText("g (float[1,1,2,2] x) => (float[1,1,2,2] y) { y = MaxPool<"
                                 "ceil_mode = 1, kernel_shape = [-9223372036854775808, 1]>(x) "
                                 "}"))
          .code(),
      StatusCode::kInvalidArgument);
  // Forms of later opsets are inferred by the newest that the library knows.
  EXPECT_FALSE(
      Try(testing::ModelFromText("g (float[] w) => (float n) { n = LayerNormalization(w, ) }", 26))
          .ok());
  // An empty slice may have any step.
  EXPECT_EQ(
      ToString(Try(testing::ModelFromText(
          "g (float[4] x) => (float[0] y) <int64[1] s = {1}, int64[1] e = {3}, int64[1] a = {0},"
          "int64[1] p = {-9223372036854775808}> { y = Slice(x, s, e, a, p) }"))),
      "OK");
}

TEST(HostileTest, TheGreatestNumbersOfNgrams) {
  for (const char* numbers : {"max_skip_count = 9223372036854775807, ngram_indexes = [0, 1]",
                              "max_skip_count = 1, ngram_indexes = [0, 9223372036854775807]"}) {
    const std::string text = fmt::format(
        "g (float[2] x) => (float[2] y) <int64[3] v = {{7, 8, 7}}> {{"
        "n = TfIdfVectorizer<mode = \"TF\", min_gram_length = 1, max_gram_length = 2, "
        "ngram_counts = [0], pool_int64s = [7, 8], {}>(v) y = Add(x, n) }}",
        numbers);
    const bool fits = std::string_view(numbers).find("[0, 1]") != std::string_view::npos;
    EXPECT_EQ(Try(testing::ModelFromText(text)).ok(), fits) << numbers;
  }
}

// The library's inference of old opsets reads the sizes of operands that have none.
TEST(HostileTest, OperandsOfOldFormsWithoutRank) {
  for (const char* node : {"Gemm", "GRU", "LSTM", "RNN"}) {
    const std::string text = fmt::format("g (float x) => (float y) {{ y = {}(x, x, x) }}", node);
    const Status refused = Try(testing::ModelFromText(text, 6));
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << node << " " << ToString(refused);
  }
}

// What a model names is told on one line.
TEST(HostileTest, NamesAreTold) {
  OnnxModel model = ReluModel();
  model.nodes[0].op_type = "No\nsuch \x7f\xc3\xa9" + std::string(100, 'x');
  model.nodes[0].outputs = {"z"};
  model.nodes.push_back({.op_type = "Relu", .inputs = {"z"}, .outputs = {"y"}});
  const std::string shown = "No such \\x7f\\xc3\\xa9" + std::string(49, 'x');
  EXPECT_EQ(ErrorOf(model),
            fmt::format("UNIMPLEMENTED: node 0 ({}): the operator is not known, and it cannot be "
                        "kept: the model does not state the type of \"z\" (as value_info)",
                        shown));
}

// Returns a model of one empty node inside `depth` nodes with subgraphs.
std::string NestedModel(int depth) {
  std::string graph("\x0a\x00", 2);
  for (int i = 0; i < depth; ++i) {
    std::string attribute;
    AppendLengthTag(6, graph.size(), attribute);
    attribute += graph;
    std::string node;
    AppendLengthTag(5, attribute.size(), node);
    node += attribute;
    graph.clear();
    AppendLengthTag(1, node.size(), graph);
    graph += node;
  }
  std::string model("\x08\x08\x42\x02\x10\x11", 6);
  AppendLengthTag(7, graph.size(), model);
  return model + graph;
}

TEST(HostileTest, DeeplyNestedSubgraphs) {
  EXPECT_EQ(ToString(Try(NestedModel(20))), "INVALID_ARGUMENT: the model has no output");
  EXPECT_EQ(ToString(Try(NestedModel(200))), "INVALID_ARGUMENT: not ONNX: a node is not readable");
}

TEST(HostileTest, SmallModelsThatGrow) {
  std::string doubling;
  for (int i = 0; i < 60; ++i) {
    doubling +=
        fmt::format("a{} = Concat<axis = 0>({}, {})\n", i, i == 0 ? "x" : fmt::format("a{}", i - 1),
                    i == 0 ? "x" : fmt::format("a{}", i - 1));
  }
  const std::string text =
      fmt::format("g (float[1024] x) => (float[1024] y) {{ {} y = Relu(a59) }}", doubling);
  EXPECT_EQ(Try(testing::ModelFromText(text)).code(), StatusCode::kResourceExhausted);
  const std::string tile = testing::ModelFromText(
      "g (float[2,2] x) => (float[2,2] y) <int64[2] r = {4000000000000, 4000000000000}>"
      "{ y = Tile(x, r) }");
  EXPECT_FALSE(Try(tile).ok());
  const std::string range = testing::ModelFromText(
      "g (float[2] x) => (float[2] y) <int64 a = {0}, int64 b = {9000000000000000000}, int64 c = "
      "{1}>"
      "{ r = Range(a, b, c) y = Relu(x) }");
  EXPECT_EQ(Try(range).code(), StatusCode::kResourceExhausted);
}

TEST(HostileTest, ReshapesToAnotherCount) {
  const std::string model = testing::ModelFromText(
      "g (float[2,3] x) => (float[2,3] y) <int64[2] t = {1, 1}> { y = Reshape(x, t) }");
  EXPECT_EQ(ToString(Try(model)),
            "INVALID_ARGUMENT: node 0 (Reshape): reshape: f32[2,3] has 6 elements, [1,1] has 1");
}

TEST(HostileTest, KnownValuesOutOfRange) {
  const char* const steps[] = {"t = Gather(s, i)",
                               "r = Mod(s, z) t = Sub(r, s)",
                               "t = Div(m, n)",
                               "t = Mul(m, m)",
                               "t = Neg(m)",
                               "r = Mod(m, n) t = Sub(r, s)",
                               "t = Abs(m)",
                               "f = Cast<to = 1>(m) t = Cast<to = 7>(f)",
                               "f = Cast<to = 1>(z) g = Log(f) t = Cast<to = 7>(g)"};
  for (const char* step : steps) {
    const std::string model = testing::ModelFromText(fmt::format(
        "g (float[2,3] x) => (float[2,3] y) <int64[2] s = {{2, 3}}, int64[2] i = {{99, -99}},"
        "int64[2] z = {{0, 0}}, int64[2] m = {{-9223372036854775807, -9223372036854775807}},"
        "int64[2] n = {{-1, -1}}> {{ {} y = Reshape(x, t) }}",
        step));
    EXPECT_FALSE(Try(model).ok()) << step;
  }
  // Divided by zero they are zero: these sizes are copied.
  const std::string zeros = testing::ModelFromText(
      "g (float[2,3] x) => (float[2,3] y) <int64[2] s = {2, 3}, int64[2] z = {0, 0}>"
      "{ t = Div(s, z) y = Reshape(x, t) }");
  EXPECT_EQ(ToString(Try(zeros)), "OK");
}

// AG_SEED=n repeats the run with seed n.
TEST(HostileTest, MutationsNeverCrash) {
  const char* const given = std::getenv("AG_SEED");
  const uint64_t seed = given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
  fmt::print("AG_SEED={}\n", seed);
  const std::string models[] = {
      testing::ConvModel(),
      testing::ModelFromText(
          "g (float[2,3,4] x) => (float[2,12] y) <int64[1] i = {0}, int64[1] m = {-1}>"
          "{ s = Shape(x) d = Gather(s, i) t = Concat<axis = 0>(d, m) z = Softmax<axis = 1>(x)"
          " q = Selu(z) y = Reshape(q, t) }"),
      testing::ModelFromText(
          "g (float[4,6] x) => (float[4,3] y) <int64[1] s = {-3}, int64[1] e = {6}, int64[1] a = "
          "{1}>"
          "{ p = Slice(x, s, e, a) k = Transpose<perm = [1,0]>(p) w, v = Split<axis = 1>(k)"
          " y = Gemm<transB = 1>(p, p) }"),
      testing::SparseModel({.values = {1, 2}, .indices = {0, 1, 1, 0}, .index_dims = {2, 2}})};
  Random random(seed);
  int accepted = 0;
  for (int round = 0; round < 6000; ++round) {
    std::string bytes = models[random.Below(std::size(models))];
    for (uint64_t edits = 1 + random.Below(4); edits > 0; --edits) {
      const size_t at = random.Below(bytes.size());
      switch (random.Below(4)) {
        case 0:
          bytes[at] = static_cast<char>(random.Next());
          break;
        case 1:
          bytes[at] ^= static_cast<char>(1 << random.Below(8));
          break;
        case 2:
          bytes.erase(at, 1 + random.Below(4));
          break;
        default:
          bytes.insert(at, 1, static_cast<char>(random.Next()));
          break;
      }
      if (bytes.empty()) bytes = "x";
    }
    accepted += Try(bytes).ok() ? 1 : 0;
  }
  EXPECT_GT(accepted, 100);  // Many edits only change numbers.
}

}  // namespace
}  // namespace ag
