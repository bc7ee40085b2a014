// Forms of Resize and Upsample from opsets that a whole model may not have, as single nodes.
#include <gtest/gtest.h>

#include "base/blobs.h"
#include "graph/onnx/import/importer.h"
#include "graph/onnx/imported_model.h"
#include "graph/onnx/origin.h"
#include "graph/onnx/testing/onnx_testing.h"
#include "graph/text_form.h"

namespace ag {
namespace {

Tensor Floats(const std::vector<float>& values) {
  Tensor tensor = Tensor::Zeros({DType::kFloat32, {static_cast<int64_t>(values.size())}});
  std::copy(values.begin(), values.end(), tensor.Mutable<float>().begin());
  return tensor;
}

OnnxAttribute Word(const char* name, const char* word) {
  return {.name = name, .type = OnnxAttributeType::kString, .s = word};
}
OnnxAttribute Number(const char* name, int64_t number) {
  return {.name = name, .type = OnnxAttributeType::kInt, .i = number};
}
OnnxAttribute Numbers(const char* name, std::vector<int64_t> numbers) {
  return {.name = name, .type = OnnxAttributeType::kInts, .ints = std::move(numbers)};
}

OnnxNode Make(const char* op, std::vector<std::string> inputs,
              std::vector<OnnxAttribute> attributes = {}) {
  return {.op_type = op,
          .inputs = std::move(inputs),
          .outputs = {"y"},
          .attributes = std::move(attributes)};
}

// Returns the import of a node that reads x f32[1,3,4] and constants.
std::string ImportAlone(int64_t opset, const OnnxNode& node) {
  const std::shared_ptr<BlobDir> blobs = testing::NewBlobs();
  BlobSink sink(*blobs);
  const ImportOptions options;
  OnnxOrigin origin;
  origin.opsets = {{"", opset}};
  Importer importer(options, origin, sink);
  const auto define = [&](const char* name, const StatusOr<ValueId>& value) {
    AG_CHECK(value.ok() && importer.Define(name, *value).ok());
  };
  define("x", importer.AddInput("x", {DType::kFloat32, {1, 3, 4}}));
  define("up", importer.AddTensor(Floats({1, 1.5f, 2})));
  define("down", importer.AddTensor(Floats({1, 0.5f, 0.25f})));
  define("both", importer.AddTensor(Floats({1, 0.5f, 2})));
  define("two", importer.AddTensor(Floats({2, 1.5f})));
  define("sizes", importer.AddTensor(Tensor::FromInts({2}, std::vector<int64_t>{2, 7})));
  const StatusOr<std::string> proto = AnonymousNode(node);
  AG_CHECK(proto.ok());
  OnnxNode read = node;
  read.proto = *proto;
  const Status status = ImportNode(read, 0, importer);
  if (!status.ok()) return ToString(status);
  AG_CHECK(importer.Output(importer.Find("y"), "y").ok());
  const StatusOr<Graph> graph = importer.Build(&origin);
  AG_CHECK(graph.ok());
  return FormatGraph(*graph);
}

struct ResizeCase {
  const char* name;
  int64_t opset;
  OnnxNode node;
  std::string expected;  // The call; "opaque": the node is kept unchanged.
};

void Check(const ResizeCase& c) {
  const std::string found = ImportAlone(c.opset, c.node);
  if (c.expected == "opaque") {
    EXPECT_NE(found.find("opaque(x"), std::string::npos) << c.name << ": " << found;
    return;
  }
  const StatusOr<Graph> graph = ParseGraph("input x f32[1,3,4]\noutput \"y\" = " + c.expected);
  EXPECT_EQ(found, graph.ok() ? FormatGraph(*graph) : c.expected) << c.name;
}

TEST(ImportResize, OfOldOpsets) {
  const OnnxAttribute linear = Word("mode", "linear");
  const OnnxAttribute scales = {
      .name = "scales", .type = OnnxAttributeType::kFloats, .floats = {1, 1.5f, 2}};
  const std::string places = " coordinate_transformation_mode=asymmetric";
  const std::string up = "resize(x) sizes=[1,4,8] scales=[1,1,3,2,2,1]" + places;
  const std::string down = "resize(x) sizes=[1,1,1] scales=[1,1,1,2,1,4]" + places;
  const ResizeCase cases[] = {
      {"upsample 7", 7, Make("Upsample", {"x"}, {scales}), up + " nearest_mode=floor"},
      {"upsample 8", 8, Make("Upsample", {"x"}, {scales, linear}), up + " mode=linear"},
      {"upsample 9", 9, Make("Upsample", {"x", "up"}), up + " nearest_mode=floor"},
      {"upsample 7 without scales", 7, Make("Upsample", {"x"}),
       "INVALID_ARGUMENT: node 0 (Upsample): attribute \"scales\" is missing"},
      {"resize 10 up", 10, Make("Resize", {"x", "up"}), up + " nearest_mode=floor"},
      {"resize 10 down", 10, Make("Resize", {"x", "down"}), down + " nearest_mode=ceil"},
      {"resize 10 linear", 10, Make("Resize", {"x", "both"}, {linear}),
       "resize(x) sizes=[1,1,8] scales=[1,1,1,2,2,1] mode=linear" + places},
      {"resize 10 both ways", 10, Make("Resize", {"x", "both"}),
       "resize(resize(x) sizes=[1,1,4] scales=[1,1,1,2,1,1]" + places +
           " nearest_mode=ceil) sizes=[1,1,8]" + places + " nearest_mode=floor"},
      {"resize 10 of too few", 10, Make("Resize", {"x", "two"}),
       "INVALID_ARGUMENT: node 0 (Resize): expected 3 scales, got 2"},
  };
  for (const ResizeCase& c : cases) Check(c);
}

TEST(ImportResize, OfNewOpsets) {
  const OnnxAttribute axes = Numbers("axes", {-1, 1});
  const ResizeCase cases[] = {
      {"sizes of axes", 18, Make("Resize", {"x", "", "", "sizes"}, {axes}),
       "resize(x) sizes=[1,7,2]"},
      {"scales of axes", 19, Make("Resize", {"x", "", "two"}, {axes}),
       "resize(x) sizes=[1,4,8] scales=[1,1,3,2,2,1]"},
      {"symmetric", 19,
       Make("Resize", {"x", "", "up"},
            {Word("coordinate_transformation_mode", "half_pixel_symmetric"), Number("antialias", 0),
             Word("keep_aspect_ratio_policy", "stretch")}),
       "resize(x) sizes=[1,4,8] scales=[1,1,3,2,2,1]"
       " coordinate_transformation_mode=half_pixel_symmetric"},
  };
  for (const ResizeCase& c : cases) Check(c);
}

TEST(ImportResize, KeepsWhatTheOperatorLacks) {
  const OnnxAttribute crop = Word("coordinate_transformation_mode", "tf_crop_and_resize");
  const ResizeCase cases[] = {
      {"crop", 13, Make("Resize", {"x", "up", "up"}, {crop}), "opaque"},
      {"an attribute of a later opset", 13,
       Make("Resize", {"x", "", "up"}, {Number("antialias", 0)}), "opaque"},
      {"smoothing", 18, Make("Resize", {"x", "", "up"}, {Number("antialias", 1)}), "opaque"},
      {"an aspect", 18,
       Make("Resize", {"x", "", "up"}, {Word("keep_aspect_ratio_policy", "not_larger")}), "opaque"},
  };
  for (const ResizeCase& c : cases) Check(c);
}

}  // namespace
}  // namespace ag
