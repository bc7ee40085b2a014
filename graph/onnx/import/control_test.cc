// Control flow, model-local functions, older opsets, and sizes that nobody gave.
#include <gtest/gtest.h>

#include "base/blobs.h"
#include "graph/onnx/import/default_sizes.h"
#include "graph/onnx/import/import.h"
#include "graph/onnx/imported_model.h"
#include "graph/onnx/testing/onnx_testing.h"
#include "graph/onnx/wire.h"
#include "graph/text_form.h"

namespace ag {
namespace {

StatusOr<ImportedModel> ImportText(std::string_view text, int opset = 17,
                                   const ImportOptions& options = {}) {
  static const std::shared_ptr<BlobDir> blobs = testing::NewBlobs();
  return ImportOnnx(testing::ModelFromText(text, opset), options, *blobs);
}

std::string GraphOf(std::string_view text, int opset = 17) {
  const auto imported = ImportText(text, opset);
  return imported.ok() ? FormatGraph(imported->graph) : ToString(imported.status());
}

std::string TextOf(std::string_view graph) { return FormatGraph(*ParseGraph(graph)); }

constexpr char kBranches[] =
    "<then_branch = t () => (float[2] a) { a = Relu(x) }, "
    "else_branch = e () => (float[2] b) { b = Exp(x) }>";

TEST(ImportControl, AKnownConditionLeavesItsBranch) {
  for (const bool yes : {true, false}) {
    const std::string text =
        fmt::format("g (float[2] x) => (float[2] y) <bool c = {{{}}}> {{ y = If{}(c) }}",
                    yes ? 1 : 0, kBranches);
    EXPECT_EQ(GraphOf(text),
              TextOf(fmt::format("input x f32[2]\noutput \"y\" = {}(x)", yes ? "relu" : "exp")));
  }
}

TEST(ImportControl, AnUnknownConditionChoosesBetweenBoth) {
  EXPECT_EQ(GraphOf(fmt::format("g (float[2] x, bool[1] c) => (float[2] y) {{ y = If{}(c) }}",
                                kBranches)),
            TextOf("input x f32[2]\ninput c bool[1]\n"
                   "output \"y\" = where(reshape(c) shape=[], relu(x), exp(x))"));
  EXPECT_EQ(GraphOf("g (float[2] x, bool c) => (float[2] y) { y = If<"
                    "then_branch = t () => (float[2] a) { a = Relu(x) }, "
                    "else_branch = e () => (float[4] b) { b = Concat<axis = 0>(x, x) }>(c) }"),
            "input x f32[2]\ninput c bool[]\noutput \"x\" = x\n");  // The node runs by itself.
}

constexpr char kAddTwice[] =
    "g (float[2] x) => (float[2] y, float[3,2] all) <int64 n = {3}, bool c = {1}> {"
    "y, all = Loop<body = b (int64 i, bool go, float[2] v) => (bool go2, float[2] w, float[2] s) {"
    "go2 = Identity(go) w = Add(v, x) s = Identity(w) }>(n, c, x) }";

// Where the condition is known the branch that is not taken need not fit.
TEST(ImportControl, BranchesThatDisagree) {
  const auto graph = [](const char* otherwise) {
    return GraphOf(
        fmt::format("g (float[2] x, bool c) => (float[2] y) {{ y = If<"
                    "then_branch = t () => (float[2] a) {{ a = Relu(x) }}, "
                    "else_branch = e {}>(c) }}",
                    otherwise));
  };
  EXPECT_EQ(graph("() => (float[2] b, float[2] d) { b = Exp(x) d = Neg(x) }"),
            "INVALID_ARGUMENT: node 0 (If): the branches have 1 and 2 outputs");
  EXPECT_EQ(graph("() => (float[2] b) { d = Exp(x) }"),
            "INVALID_ARGUMENT: node 0 (If): nothing defines its input \"b\"");
  EXPECT_EQ(
      graph("() => (int64[2] b) { b = Cast<to = 7>(x) }"),
      "INVALID_ARGUMENT: node 0 (If): output 0: its branches give f32[2] and i64[2], which must "
      "be of one element type");
  EXPECT_EQ(graph("() => (float[1] b) { b = ReduceMax<axes = [0]>(x) }"),
            "input x f32[2]\ninput c bool[]\noutput \"x\" = x\n");  // The node runs by itself.
  EXPECT_EQ(GraphOf("g (float[2] x, bool c) => (float[2] y) { y = If<"
                    "then_branch = t () => (float[2] a) { a = Relu(x) }>(c) }"),
            "INVALID_ARGUMENT: node 0 (If): attribute \"else_branch\" is no graph");
}

TEST(ImportControl, ALoopWithAKnownCountIsUnrolled) {
  EXPECT_EQ(GraphOf(kAddTwice),
            TextOf("input x f32[2]\na = add(x, x)\nb = add(a, x)\nc = add(b, x)\n"
                   "output \"y\" = c\noutput \"all\" = concat(reshape(a) shape=[1,2], "
                   "reshape(b) shape=[1,2], reshape(c) shape=[1,2]) axis=0"));
}

TEST(ImportControl, ALongLoopIsNotUnrolled) {
  const std::string text =
      "g (float[2] x) => (float[2] y) <int64 n = {1000000}, bool c = {1}> {"
      "y = Loop<body = b (int64 i, bool go, float[2] v) => (bool go2, float[2] w) {"
      "go2 = Identity(go) w = Add(v, x) }>(n, c, x) }";
  const auto imported = ImportText(text);
  ASSERT_TRUE(imported.ok()) << ToString(imported.status());
  EXPECT_EQ(imported->origin.dynamic.nodes.size(), 1u);
  EXPECT_NE(imported->warnings[0].find("1025 iterations are more than the 1024 that are unrolled"),
            std::string::npos)
      << imported->warnings[0];
}

TEST(ImportControl, AScanWalksItsSequence) {
  EXPECT_EQ(
      GraphOf("g (float[2] h, float[2,2] x) => (float[2] y, float[2,2] all) {"
              "y, all = Scan<num_scan_inputs = 1, body = b (float[2] s, float[2] e) => "
              "(float[2] t, float[2] p) { t = Add(s, e) p = Relu(t) }>(h, x) }"),
      TextOf("input h f32[2]\ninput x f32[2,2]\n"
             "a = add(h, reshape(slice(x) axes=[0] starts=[0] ends=[1] steps=[1]) shape=[2])\n"
             "b = add(a, reshape(slice(x) axes=[0] starts=[1] ends=[2] steps=[1]) shape=[2])\n"
             "output \"y\" = b\noutput \"all\" = concat(reshape(relu(a)) shape=[1,2], "
             "reshape(relu(b)) shape=[1,2]) axis=0"));
}

// Returns the graph of a model of one Scan that walks `x`; its operands are `names`.
std::string GraphOfScan(std::string_view sizes, std::string_view sequences,
                        const std::vector<std::string>& names, int opset) {
  const std::string bytes = testing::ModelFromText(
      fmt::format("g (float[1,2] h, float[{0}] x) => (float[{0}] y) {{ y = Scan<"
                  "num_scan_inputs = {1}, body = b (float[2] s, float[2] e) => "
                  "(float[2] t) {{ t = Add(s, e) }}>(h, x) }}",
                  sizes, sequences),
      opset);
  StatusOr<OnnxModel> model = ParseModel(bytes, 10);
  AG_CHECK(model.ok());
  model->nodes[0].inputs = names;
  static const std::shared_ptr<BlobDir> blobs = testing::NewBlobs();
  const auto imported = ImportOnnx(*SerializeModel(*model), {}, *blobs);
  return imported.ok() ? FormatGraph(imported->graph) : ToString(imported.status());
}

TEST(ImportControl, AScanThatSaysWrongNumbers) {
  EXPECT_EQ(GraphOfScan("1,2,2", "1", {"", "", "x"}, 8),
            "INVALID_ARGUMENT: node 0 (Scan): operand 1 is missing");
  EXPECT_EQ(GraphOfScan("1,2,2", "-9223372036854775808", {"h", "x"}, 9),
            "INVALID_ARGUMENT: node 0 (Scan): num_scan_inputs is -9223372036854775808, the node "
            "has 2 operands");
  EXPECT_EQ(GraphOfScan("1099511627776,0,2", "1", {"", "h", "x"}, 8),
            "INVALID_ARGUMENT: input \"x\": f32[1099511627776,0,2] has more than 2^40 elements");
  // A number of operands below any: the node runs by itself.
  EXPECT_EQ(GraphOfScan("1,2,2", "-9223372036854775808", {"", "h", "x"}, 8),
            "input h f32[1,2]\ninput x f32[1,2,2]\noutput \"h\" = h\n");
}

constexpr char kHeader[] = "<ir_version: 8, opset_import: [\"\" : 17, \"f\" : 1]>";

TEST(ImportFunctions, AreWrittenOut) {
  EXPECT_EQ(GraphOf(fmt::format("{} g (float[2] x) => (float[2] y) {{ y = f.twice(x) }} "
                                "<domain: \"f\", opset_import: [\"\" : 17]> "
                                "twice (a) => (b) {{ x = Relu(a) b = Add(x, x) }}",
                                kHeader)),
            TextOf("input x f32[2]\na = relu(x)\noutput \"y\" = add(a, a)"));
}

TEST(ImportFunctions, ThatCallThemselvesAreRefused) {
  const auto functions = [](std::string_view text) {
    return GraphOf(
        fmt::format("{} g (float[2] x) => (float[2] y) {{ y = f.loop(x) }} {}", kHeader, text));
  };
  const std::string says = "the function calls itself, by others or directly";
  EXPECT_EQ(functions("<domain: \"f\", opset_import: [\"\" : 17, \"f\" : 1]> "
                      "loop (a) => (b) { x = Relu(a) b = f.loop(x) }"),
            "INVALID_ARGUMENT: node 0 (loop): node 1 (loop): " + says);
  EXPECT_EQ(functions("<domain: \"f\", opset_import: [\"\" : 17, \"f\" : 1]> "
                      "loop (a) => (b) { b = f.other(a) } "
                      "<domain: \"f\", opset_import: [\"\" : 17, \"f\" : 1]> "
                      "other (a) => (b) { b = f.loop(a) }"),
            "INVALID_ARGUMENT: node 0 (loop): node 0 (other): node 0 (loop): " + says);
}

TEST(ImportOlderOpsets, AttributesThatBecameInputs) {
  EXPECT_EQ(GraphOf("g (float[2,3] x, float[2] c) => (float[2,3] y)"
                    "{ y = Add<broadcast = 1, axis = 0>(x, c) }",
                    6),
            TextOf("input x f32[2,3]\ninput c f32[2]\n"
                   "output \"y\" = add(x, reshape(c) shape=[2,1])"));
  EXPECT_EQ(GraphOf("g (float[4] x) => (float[2] y) { y = Slice<starts = [1], ends = [3]>(x) }", 9),
            TextOf("input x f32[4]\n"
                   "output \"y\" = slice(x) axes=[0] starts=[1] ends=[3] steps=[1]"));
  EXPECT_EQ(GraphOf("g (float[4] x) => (float[4] y) { y = Clip<min = 0.0, max = 6.0>(x) }", 7),
            TextOf("input x f32[4]\noutput \"y\" = clip(x) min=0 max=6"));
  EXPECT_EQ(GraphOf("g (float[4] x) => (float[6] y) { y = Pad<pads = [1, 1]>(x) }", 10),
            TextOf("input x f32[4]\noutput \"y\" = pad(x) pads=[1,1]"));
}

TEST(DefaultSizes, FollowTheRole) {
  const auto open = [](std::initializer_list<const char*> names, int32_t type = 1) {
    OnnxValueInfo info{.name = "x", .data_type = type, .has_shape = true};
    for (const char* const name : names) {
      const int64_t size = std::atoi(name);
      info.dims.push_back({size > 0 ? size : -1, size > 0 ? "" : name});
    }
    Shape sizes;
    for (size_t i = 0; i < info.dims.size(); ++i) sizes.push_back(DefaultSize(info, i, 0));
    return ShapeToString(sizes);
  };
  EXPECT_EQ(open({"N", "?", "?", "?"}), "[1,3,224,224]");
  EXPECT_EQ(open({"?", "?", "?", "3"}), "[1,224,224,3]");
  EXPECT_EQ(open({"batch_size", "seq_len"}, 7), "[1,128]");
  EXPECT_EQ(open({"", ""}, 7), "[1,128]");
  EXPECT_EQ(open({"batch", "past_sequence_length"}, 7), "[1,16]");
  EXPECT_EQ(open({"", "features"}), "[1,1]");
  EXPECT_EQ(open({"", "", "80"}), "[1,128,128]");
  EXPECT_EQ(open({"batch", "num_samples"}), "[1,16000]");
  EXPECT_EQ(open({"N", "N"}), "[1,1]");
}

TEST(DefaultSizes, TheFirstSetThatTheNodesFitIsTaken) {
  const auto imported = ImportText(
      "g (float[N,3,H,W] x, float[16,3,300,1] w) => (float[N,16,P,Q] y) { y = Conv(x, w) }");
  ASSERT_TRUE(imported.ok()) << ToString(imported.status());
  EXPECT_EQ(imported->warnings[0],
            "the model leaves sizes open, these were chosen: --shape x=1x3x640x640");
}

// Positions 0 to 127 do not fit; those of 16,000 would be too many to be known here.
TEST(DefaultSizes, ATableWithFewRowsTakesShorterSequences) {
  const std::string body =
      "y) <int64 zero = {0}, int64 one = {1}> { s = Shape(ids) n = Gather(s, one) "
      "at = Range(zero, n, one) y = Gather(table, at) }";
  const std::string open = "g (int64[N,S] ids, float[64,300] table) => (float[P,300] " + body;
  const auto imported = ImportText(open);
  ASSERT_TRUE(imported.ok()) << ToString(imported.status());
  EXPECT_EQ(imported->warnings[0],
            "the model leaves sizes open, these were chosen: --shape ids=1x64");
  const std::string fixed = "g (int64[1,65] ids, float[64,300] table) => (float[P,300] " + body;
  const std::string why = "INVALID_ARGUMENT: node 3 (Gather): index 64 is outside [-64, 64)";
  EXPECT_EQ(ToString(ImportText(fixed).status()), why);
  EXPECT_EQ(ToString(ImportText(open, 17, {.shapes = {{"ids", {1, 65}}}}).status()),
            why + " (smaller sizes may fit: --shape)");
}

TEST(DefaultSizes, SizesThatTheUserGivesAreNotTriedInOtherSets) {
  const auto imported =
      ImportText("g (float[2,8] x, float[4,3] w) => (float[2,3] y) { y = MatMul(x, w) }");
  EXPECT_EQ(ToString(imported.status()),
            "INVALID_ARGUMENT: node 0 (MatMul): matmul: inner dims differ: 8 vs 4");
}

TEST(DefaultSizes, OneSymbolIsOneSizeAndAQuestionMarkIsNone) {
  const auto imported = ImportText(
      "g (float[N,S] x, float[S,N] w, float[?,3] a, float[3,?] b) => (float[N,N] y, float[?,?] z)"
      "{ y = MatMul(x, w) z = MatMul(a, b) }");
  ASSERT_TRUE(imported.ok()) << ToString(imported.status());
  EXPECT_EQ(imported->graph.type({imported->graph.inputs()[1], 0}).ToString(), "f32[128,1]");
  EXPECT_EQ(imported->warnings[0],
            "the model leaves sizes open, these were chosen: --shape x=1x128 --shape a=1x3 "
            "--shape b=3x1");
}

TEST(DefaultSizes, ASumFollowsItsParts) {
  EXPECT_EQ(SizeOfSum("past + sequence", {{"past", 16}, {"sequence", 128}}), 144);
  EXPECT_EQ(SizeOfSum("past+1", {{"past", 16}}), 17);
  EXPECT_EQ(SizeOfSum("past + other", {{"past", 16}}), std::nullopt);
  EXPECT_EQ(SizeOfSum("past", {{"past", 16}}), std::nullopt);
}

}  // namespace
}  // namespace ag
