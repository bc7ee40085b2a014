// Graphs that are written with open sizes, from examples of them at three sets of sizes.
#include "graph/onnx/export/open_sizes.h"

#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "graph/onnx/export/export.h"
#include "graph/onnx/import/import.h"
#include "graph/onnx/testing/onnx_testing.h"
#include "graph/reference/evaluate.h"
#include "graph/text_form.h"

namespace ag {
namespace {

struct ExampleSizes {
  int64_t b = 1, s = 1;
};
constexpr ExampleSizes kExamples[] = {{3, 11}, {5, 9}, {7, 13}};
constexpr ExampleSizes kOthers[] = {{1, 8}, {2, 5}, {4, 16}};

// Puts sizes in the place of {b}, {s}, {bs}, {4b}, {s+1} and {s-1}.
Graph At(std::string_view text, ExampleSizes at, MemoryWeights& weights) {
  const auto put = [](int64_t v) { return std::to_string(v); };
  std::string places;
  for (int64_t i = 0; i < at.s; ++i) places += (i > 0 ? ", " : "") + put(i);
  std::string mask;
  for (int64_t i = 0; i < at.s * at.s; ++i) {
    mask += std::string(i > 0 ? ", " : "") + (i % at.s <= i / at.s ? "1" : "0");
  }
  const std::string there = absl::StrReplaceAll(absl::string_view(text.data(), text.size()),
                                                {{"{b}", put(at.b)},
                                                 {"{s}", put(at.s)},
                                                 {"{bs}", put(at.b * at.s)},
                                                 {"{4b}", put(4 * at.b)},
                                                 {"{s+1}", put(at.s + 1)},
                                                 {"{s-1}", put(at.s - 1)},
                                                 {"{places}", "{" + places + "}"},
                                                 {"{mask}", "{" + mask + "}"}});
  const StatusOr<Graph> graph = ParseGraph(there, &weights);
  EXPECT_TRUE(graph.ok()) << ToString(graph.status()) << "\n" << there;
  return graph.ok() ? *graph : Graph();
}

OnnxOrigin OpenOrigin() {
  OnnxOrigin origin;
  origin.opsets = {{"", 17}};
  origin.graph_name = "g";
  origin.dim_names = {{"x:0", "batch"}, {"x:1", "sequence"}};
  return origin;
}

StatusOr<std::string> Written(std::string_view text, MemoryWeights& weights) {
  ExportOptions options;
  for (const ExampleSizes& at : kExamples) options.at_other_sizes.push_back(At(text, at, weights));
  const Graph first = options.at_other_sizes.front();
  options.at_other_sizes.erase(options.at_other_sizes.begin());
  return ExportOnnx(first, OpenOrigin(), weights, options);
}

struct OpenSizesCase {
  const char* name;
  const char* text;
  const char* ops;  // ONNX operators in order.
};

class OpenSizesTest : public ::testing::TestWithParam<OpenSizesCase> {};

// The file keeps the open sizes, and at any of them it computes what the graph does there.
TEST_P(OpenSizesTest, HoldsAtOtherSizes) {
  const OpenSizesCase& c = GetParam();
  MemoryWeights weights;
  const StatusOr<std::string> bytes = Written(c.text, weights);
  ASSERT_TRUE(bytes.ok()) << ToString(bytes.status());
  const auto model = ParseModel(*bytes, 1000);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->inputs[0].dims[0].name, "batch");
  EXPECT_EQ(model->inputs[0].dims[1].name, "sequence");
  std::string ops;
  for (const OnnxNode& node : model->nodes) ops += (ops.empty() ? "" : " ") + node.op_type;
  EXPECT_EQ(ops, c.ops);
  const std::shared_ptr<BlobDir> blobs = testing::NewBlobs();
  for (const ExampleSizes& at : kOthers) {
    const Graph graph = At(c.text, at, weights);
    ImportOptions options;
    options.shapes["x"] = graph.type({graph.inputs()[0], 0}).shape;
    const auto read = ImportOnnx(*bytes, options, *blobs);
    ASSERT_TRUE(read.ok()) << ToString(read.status());
    const std::vector<Tensor> inputs = {RandomTensor(graph.type({graph.inputs()[0], 0}), 3)};
    const auto before = Evaluate(graph, inputs, weights);
    const auto after = Evaluate(read->graph, inputs, BlobWeights(blobs));
    ASSERT_TRUE(before.ok() && after.ok()) << ToString(after.status());
    EXPECT_EQ((*before)[0].type(), (*after)[0].type());
    EXPECT_EQ((*before)[0].bytes(), (*after)[0].bytes()) << at.b << " " << at.s;
  }
}

const OpenSizesCase kOpenCases[] = {
    {"NothingToDo", "input x f32[{b},{s},8]\noutput y = relu(x)", "Relu"},
    {"AReshapeThatKeepsSizes", "input x f32[{b},{s},8]\noutput y = reshape(x) shape=[{b},{s},2,4]",
     "Reshape"},
    {"AReshapeOfWhatRemains", "input x f32[{b},{s},8]\noutput y = reshape(x) shape=[{bs},8]",
     "Reshape"},
    {"AReshapeBack",
     "input x f32[{b},{s},8]\n"
     "output y = reshape(relu(reshape(x) shape=[{bs},8])) shape=[{b},{s},8]",
     "Reshape Relu Shape Gather Concat Reshape"},
    {"HeadsBesideTheBatch",
     "input x f32[{b},{s},8]\nt = transpose(reshape(x) shape=[{b},{s},4,2]) perm=[0,2,1,3]\n"
     "output y = reshape(reshape(t) shape=[{4b},{s},2]) shape=[{b},4,{s},2]",
     "Reshape Transpose Shape Gather Concat Reshape Concat Reshape"},
    {"AnExpand",
     "input x f32[{b},{s},8]\nc = const f32[1,1,8] seed 1\n"
     "output y = concat(expand(c) shape=[{b},1,8], x) axis=1",
     "Shape Gather Concat Expand Concat"},
    {"TheLastElement",
     "input x f32[{b},{s},8]\noutput y = slice(x) axes=[1] starts=[{s-1}] ends=[{s}] steps=[1]",
     "Slice"},
    {"AllButTheLast",
     "input x f32[{b},{s},8]\noutput y = slice(x) axes=[1] starts=[0] ends=[{s-1}] steps=[1]",
     "Slice"},
    {"TheFirstOfAWeight",
     "input x f32[{b},{s},8]\nw = const f32[1,64,8] seed 1\n"
     "output y = add(x, slice(w) axes=[1] starts=[0] ends=[{s}] steps=[1])",
     "Shape Gather Slice Add"},
    {"PlacesInAConstant",
     "input x f32[{b},{s},8]\nw = const f32[64,8] seed 1\n"
     "output y = add(x, gather(w, const i64[{s}] {places}) axis=0)",
     "Shape Gather Reshape Range Expand Gather Add"},
    {"AConstantThatIsSpread",
     "input x f32[{b},{s},8]\noutput y = concat(x, const f32[{b},1,8] {1.5}) axis=1",
     "Shape Gather Concat Expand Concat"},
    {"AMask",
     "input x f32[{b},{s},8]\n"
     "output y = add(matmul(x, transpose(x) perm=[0,2,1]), const f32[{s},{s}] {mask})",
     "Transpose MatMul Shape Gather Reshape Range Reshape Range Reshape Add Less Where Concat "
     "Expand Add"},
};

INSTANTIATE_TEST_SUITE_P(Table, OpenSizesTest, ::testing::ValuesIn(kOpenCases),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(OpenSizesRefusals, NameTheNodeAndWhatDiffers) {
  struct Refused {
    const char *first, *other, *message;
  };
  const Refused kRefused[] = {
      {"input x f32[3,11]\noutput y = reshape(x) shape=[33]",
       "input x f32[5,9]\noutput y = relu(x)",
       "node 1 (reshape): another node (relu) stands here at other sizes"},
      {"input x f32[3,11]\noutput y = softmax(x) axis=0",
       "input x f32[5,9]\noutput y = softmax(x) axis=1",
       "node 1 (softmax): attribute \"axis\" is another at other sizes"},
      {"input x f32[3,11]\noutput y = relu(relu(x))", "input x f32[5,9]\noutput y = relu(x)",
       "3 nodes are 2 at other sizes"},
      {"input x f32[3,11]\noutput y = slice(x) axes=[0] starts=[0] ends=[2] steps=[1]",
       "input x f32[5,9]\noutput y = slice(x) axes=[0] starts=[2] ends=[4] steps=[1]",
       "node 1 (slice): no size gives its starts: 0 at x=3x11, 2 at x=5x9, 1 at x=7x13"},
      {"input x f32[3,11]\noutput y = add(x, const f32[11] {1, 5, 2, 8, 3, 3, 3, 1, 7, 7, 7})",
       "input x f32[5,9]\noutput y = add(x, const f32[9] {2, 5, 2, 8, 3, 3, 3, 1, 7})",
       "node 2 (add): its constant f32[11] has other values at other sizes, which no rule known "
       "here gives"},
  };
  for (const Refused& refused : kRefused) {
    MemoryWeights weights;
    const Graph first = *ParseGraph(refused.first, &weights);
    ExportOptions options;
    options.at_other_sizes = {*ParseGraph(refused.other, &weights)};
    if (std::string_view(refused.message).find("x=7x13") != std::string_view::npos) {
      options.at_other_sizes.push_back(*ParseGraph(
          "input x f32[7,13]\noutput y = slice(x) axes=[0] starts=[1] ends=[3] steps=[1]",
          &weights));
    }
    const auto bytes = ExportOnnx(first, OpenOrigin(), weights, options);
    EXPECT_EQ(bytes.status().code(), StatusCode::kFailedPrecondition);
    EXPECT_EQ(Message(bytes.status()), refused.message);
  }
}

}  // namespace
}  // namespace ag
