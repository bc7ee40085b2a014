#include <gtest/gtest.h>

#include <algorithm>

#include "graph/onnx/export/export.h"
#include "graph/onnx/fields.h"
#include "graph/onnx/import/import.h"
#include "graph/onnx/testing/onnx_testing.h"
#include "graph/onnx/wire.h"

namespace ag {
namespace {

// Returns doc_string and metadata_props under these field numbers, with three times the text.
std::string NotesOf(uint32_t doc, uint32_t metadata, std::string_view text) {
  std::string entry, fields;
  for (const uint32_t number : {1, 2}) {  // Key and value.
    AppendLengthTag(number, text.size(), entry);
    entry += text;
  }
  for (const auto& [number, bytes] : {std::pair{doc, std::string(text)}, {metadata, entry}}) {
    AppendLengthTag(number, bytes.size(), fields);
    fields += bytes;
  }
  return fields;
}

// A model that says more than it computes: relu, neg, exp of a square matrix with an open side.
OnnxModel ModelThatStates() {
  const auto value = [](const char* name, std::vector<OnnxDim> dims) {
    OnnxModel one;
    one.origin.opsets = {{"", 17}};
    one.inputs = {{.name = name, .data_type = 1, .has_shape = true, .dims = std::move(dims)}};
    const std::string bytes = *SerializeModel(one);
    const std::string proto = ParseModel(bytes, 9)->inputs[0].proto;
    return OnnxValueInfo{.name = name, .proto = proto + NotesOf(3, 4, std::string("of ") + name)};
  };
  static const std::string& scale = *new std::string("\0\0\0\x3f", 4);
  OnnxModel model;
  model.origin.opsets = {{"", 17}};
  model.origin.ir_version = 10;
  model.origin.graph_notes = NotesOf(10, 16, "of the graph");
  model.inputs = {value("x", {{-1, "n"}, {2}})};
  model.outputs = {value("y", {{-1, "n"}, {2}})};
  model.value_infos = {value("a", {{-1, "n"}, {2}}), value("b", {{-1, "n"}, {2}}),
                       value("c", {{7}, {2}})};
  model.initializers = {{.name = "s", .data_type = 1, .bytes = scale}};
  model.annotations = {{.tensor = "a", .parameters = {{"SCALE_TENSOR", "s"}}},
                       {.tensor = "b", .parameters = {{"SCALE_TENSOR", "s"}}},
                       {.tensor = "a", .parameters = {{"SCALE_TENSOR", "nothing"}}}};
  const auto node = [](const char* op, const char* in, const char* out) {
    return OnnxNode{.op_type = op,
                    .name = std::string("/") + op,
                    .inputs = {in},
                    .outputs = {out},
                    .notes = NotesOf(6, 9, std::string("of ") + op)};
  };
  model.nodes = {node("Relu", "x", "a"), node("Neg", "a", "b"), node("Sin", "b", "c"),
                 node("Exp", "c", "y")};
  return model;
}

// Returns how often each text of `texts` is in `bytes`.
std::string Counts(std::string_view bytes, std::initializer_list<std::string_view> texts) {
  std::string counts;
  for (const std::string_view text : texts) {
    int count = 0;
    for (size_t at = bytes.find(text); at != bytes.npos; at = bytes.find(text, at + 1)) ++count;
    counts += fmt::format("{}{}", counts.empty() ? "" : " ", count);
  }
  return counts;
}

// Neg goes, and what reads it is new. What is there still has its types and comments, and a type
// that was wrong is left out.
TEST(ExportStatedTest, WhatTheModelStatesIsKept) {
  const auto blobs = testing::NewBlobs();
  const std::string bytes = *SerializeModel(ModelThatStates());
  EXPECT_EQ(Counts(bytes, {"of the graph", "of x", "of b", "of Neg", "of Sin"}), "3 3 3 3 3");
  const auto imported = ImportOnnx(bytes, {.shapes = {{"x", {4, 2}}}}, *blobs);
  ASSERT_TRUE(imported.ok()) << ToString(imported.status());
  const Graph& graph = imported->graph;
  GraphBuilder builder(graph);
  const Edge exp = graph.outputs()[0].edge, sin = graph.node(exp.node).inputs[0];
  const Edge neg = graph.node(sin.node).inputs[0], relu = graph.node(neg.node).inputs[0];
  // sin(-x) is -sin(x).
  const Edge other = *builder.Add1(OpKind::kNeg, {*builder.Add1(OpKind::kSin, {relu})});
  ASSERT_TRUE(builder.Replace(sin, other).ok());
  const Graph rewritten = *builder.Build();
  std::vector<std::string> rules(static_cast<size_t>(rewritten.size()), "sin-of-neg");
  // Across processes the origin is bytes.
  const auto origin = DecodeOrigin(EncodeOrigin(imported->origin));
  ASSERT_TRUE(origin.ok()) << ToString(origin.status());
  const auto exported = ExportOnnx(rewritten, *origin, BlobWeights(blobs),
                                   {.imported = &graph, .rules = std::move(rules)});
  ASSERT_TRUE(exported.ok()) << ToString(exported.status());
  EXPECT_EQ(Counts(*exported, {"of the graph", "of x", "of y", "of a", "of b", "of c", "of Relu",
                               "of Exp", "of Neg", "of Sin"}),
            "3 3 3 3 0 0 3 3 0 0");
  const auto again = ParseModel(*exported, 100);
  ASSERT_TRUE(again.ok()) << ToString(again.status());
  std::string text;
  for (const OnnxNode& node : again->nodes) text += node.name + " ";
  EXPECT_EQ(text, "/Relu /Neg/sin-of-neg/sin /Neg/sin-of-neg/neg /Exp ");
  ASSERT_EQ(again->value_infos.size(), 1u);
  EXPECT_EQ(again->value_infos[0].name, "a");
  EXPECT_EQ(again->value_infos[0].dims[0].size, 4);
  ASSERT_EQ(again->annotations.size(), 1u);
  EXPECT_EQ(again->annotations[0].tensor, "a");
  ASSERT_EQ(again->initializers.size(), 1u);
  EXPECT_EQ(again->initializers[0].name, "s");
  EXPECT_EQ(again->origin.ir_version, 10);
  const auto& metadata = again->origin.metadata;
  const auto rule = std::ranges::find(metadata, "autograph.rules", [](auto& e) { return e.first; });
  ASSERT_NE(rule, metadata.end());
  EXPECT_EQ(rule->second, "/Neg/sin-of-neg/sin\tsin-of-neg\n/Neg/sin-of-neg/neg\tsin-of-neg\n");
}

// A graph that was not rewritten comes back with all of it.
TEST(ExportStatedTest, CommentsOfAnUnchangedGraphStay) {
  const auto blobs = testing::NewBlobs();
  const auto imported = ImportOnnx(*SerializeModel(ModelThatStates()), {}, *blobs);
  ASSERT_TRUE(imported.ok()) << ToString(imported.status());
  const auto exported = ExportOnnx(imported->graph, imported->origin, BlobWeights(blobs),
                                   {.imported = &imported->graph});
  ASSERT_TRUE(exported.ok()) << ToString(exported.status());
  EXPECT_EQ(Counts(*exported, {"of Relu", "of Neg", "of Sin", "of Exp", "of b", "of c"}),
            "3 3 3 3 3 0");
}

// Exporters write a trace for each node; equal nodes stay equal.
TEST(ExportStatedTest, CommentsAreNoPartOfAKeptNode) {
  OnnxNode node{.op_type = "CumSum", .inputs = {"x", "i"}, .outputs = {"y"}};
  const std::string plain = *AnonymousNode(node);
  node.notes = NotesOf(6, 9, "a trace");
  EXPECT_EQ(*AnonymousNode(node), plain);
}

}  // namespace
}  // namespace ag
