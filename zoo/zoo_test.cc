#include "zoo/zoo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/blobs.h"
#include "graph/onnx/import/import.h"
#include "graph/reference/evaluate.h"

namespace ag {
namespace {

// Counts learned numbers as papers do: no batch-norm statistics, no absent biases, no scalars.
int64_t CountParameters(const Graph& graph) {
  int64_t count = 0;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    const TensorType& type = node.outputs[0];
    if (node.op != OpKind::kConstant || type.dtype != DType::kFloat32) continue;
    if (type.shape.empty() || node.constant->digest == Tensor::Zeros(type).Name()) continue;
    const auto uses = graph.uses({id, 0});
    const bool statistic = std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
      return graph.node(use.node).op == OpKind::kBatchNorm && use.index >= 3;
    });
    if (!statistic) count += type.NumElements();
  }
  return count;
}

int Count(const Graph& graph, OpKind op) {
  return static_cast<int>(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                                        [&](const Node& node) { return node.op == op; }));
}

struct Published {
  const char* name;
  int64_t parameters;
  int convolutions, products;
};

TEST(ZooTest, NetworksHaveTheirPublishedSizes) {
  const Published cases[] = {
      {"inception_v3", 23'834'568, 94, 1}, {"resnet50", 25'557'032, 53, 1},
      {"resnext50", 25'028'904, 53, 1},    {"nasnet_a", 88'753'150, -1, 1},
      {"nasnet_mobile", 5'289'978, -1, 1}, {"rnntc_sru", 3 * 1024 * 1024, 0, 60},
      {"bert", 109'482'240, 0, 97},        {"squeezenet", 1'235'496, 26, 0},
      {"vit", 86'567'656, 1, 97},
  };
  for (const Published& c : cases) {
    MemoryWeights weights;
    const StatusOr<Graph> graph = BuildZooModel(c.name, {}, &weights);
    ASSERT_TRUE(graph.ok()) << c.name << ToString(graph.status());
    EXPECT_EQ(CountParameters(*graph), c.parameters) << c.name;
    EXPECT_EQ(Count(*graph, OpKind::kMatMul), c.products) << c.name;
    if (c.convolutions < 0) continue;
    EXPECT_EQ(Count(*graph, OpKind::kConv), c.convolutions) << c.name;
  }
}

std::vector<Tensor> InputsOf(const Graph& graph, uint64_t seed) {
  std::vector<Tensor> inputs;
  for (const NodeId id : graph.inputs()) {
    inputs.push_back(RandomTensor(graph.node(id).outputs[0], seed++));
  }
  return inputs;
}

TEST(ZooTest, TinyModelsRunAndAreNotFlat) {
  for (const ZooEntry& entry : Zoo()) {
    if (!entry.tiny) continue;
    MemoryWeights weights;
    const StatusOr<Graph> graph = BuildZooModel(entry.name, {.batch = 2}, &weights);
    ASSERT_TRUE(graph.ok()) << entry.name;
    const auto outputs = Evaluate(*graph, InputsOf(*graph, 1), weights);
    ASSERT_TRUE(outputs.ok()) << entry.name << ToString(outputs.status());
    for (const Tensor& output : *outputs) {
      double sum = 0;
      for (const float value : output.As<float>()) sum += value * value;
      const double size = std::sqrt(sum / static_cast<double>(output.type().NumElements()));
      EXPECT_GT(size, 0.1) << entry.name;
      EXPECT_LT(size, 20) << entry.name;
    }
  }
}

TEST(ZooTest, SameSeedSameBytes) {
  const auto a = ZooModelOnnx("tiny_cnn"), b = ZooModelOnnx("tiny_cnn");
  const auto c = ZooModelOnnx("tiny_cnn", {.seed = 2});
  ASSERT_TRUE(a.ok() && b.ok() && c.ok());
  EXPECT_EQ(*a, *b);
  EXPECT_NE(*a, *c);
}

TEST(ZooTest, ExportsComeBackAsTheSameGraph) {
  const StatusOr<TempDir> folder = TempDir::Make("zoo");
  ASSERT_TRUE(folder.ok());
  auto blobs = BlobDir::Open(folder->path());
  ASSERT_TRUE(blobs.ok());
  for (const ZooEntry& entry : Zoo()) {
    if (!entry.tiny) continue;
    MemoryWeights weights;
    const StatusOr<Graph> graph = BuildZooModel(entry.name, {}, &weights);
    const StatusOr<std::string> bytes = ZooModelOnnx(entry.name);
    ASSERT_TRUE(graph.ok() && bytes.ok()) << entry.name << ToString(bytes.status());
    const auto imported = ImportOnnx(*bytes, {}, **blobs);
    ASSERT_TRUE(imported.ok()) << entry.name << ToString(imported.status());
    EXPECT_TRUE(imported->warnings.empty()) << entry.name;
    EXPECT_EQ(imported->graph.inputs().size(), graph->inputs().size()) << entry.name;
    // BERT's positions and ViT's token are recipes, which export folds.
    if (entry.name == "tiny_bert" || entry.name == "tiny_vit") continue;
    EXPECT_EQ(imported->graph.digest(), graph->digest()) << entry.name;
  }
}

TEST(ZooTest, UnknownNamesGetASuggestion) {
  const auto graph = BuildZooModel("resnet5O", {}, nullptr);
  EXPECT_EQ(Message(graph.status()), "no zoo model is called 'resnet5O'; did you mean 'resnet50'?");
  MemoryWeights weights;
  EXPECT_EQ(Message(BuildZooModel("tiny_cnn", {.batch = 0}, &weights).status()),
            "batch 0 is below 1");
}

}  // namespace
}  // namespace ag
