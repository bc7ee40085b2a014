#include "plan/instances/instances.h"

#include <gtest/gtest.h>

#include "graph/batch/samples.h"
#include "plan/instances/timeline.h"
#include "plan/testing/testing.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "zoo/zoo.h"

namespace ag {
namespace {

// Four products, each of half the width: alone 6144, 3072, 1536 and 768 bytes.
constexpr const char* kStages =
    "input x f32[16,64]\nw1 = const f32[64,32] seed 1\nw2 = const f32[32,16] seed 2\n"
    "w3 = const f32[16,8] seed 3\nw4 = const f32[8,4] seed 4\n"
    "output y = matmul(matmul(matmul(matmul(x, w1), w2), w3), w4)\n";
constexpr const char* kPublishedOrder = "a8 a7 b4 a6 a5 b3 c2 a4 a3 b2 a2 a1 b1 c1 d1";

struct Scene {
  LayeredGraph layered;
  std::vector<SubGraph> subs;
  InstanceGraph instances;
  Walk WalkIn(const std::vector<int>& order) const {
    return WalkOf(layered, subs, instances, order);
  }
};

Scene MakeScene(const Graph& graph, const std::string& precision, int64_t buffer_bytes) {
  Scene scene{FormLayers(graph, precision), {}, {}};
  scene.subs = FormSubGraphs(scene.layered, buffer_bytes);
  scene.instances = MakeInstances(scene.layered, scene.subs);
  return scene;
}

std::vector<int64_t> FactorsOf(const Scene& scene) {
  std::vector<int64_t> factors;
  for (const SubGraph& sub : scene.subs) factors.push_back(sub.split.factor);
  return factors;
}

TEST(Instances, RunInThePublishedOrder) {
  const Scene scene = MakeScene(GraphOf(kStages), "fp32", 768);
  EXPECT_EQ(FactorsOf(scene), (std::vector<int64_t>{8, 4, 2, 1}));
  EXPECT_EQ(FormatOrder(scene.instances, DepthFirstOrder(scene.instances)), kPublishedOrder);
  EXPECT_EQ(FormatOrder(scene.instances, BreadthFirstOrder(scene.instances)),
            "a1 a2 a3 a4 a5 a6 a7 a8 b1 b2 b3 b4 c1 c2 d1");
  // 8 x 4, 4 x 2 and 2 x 1 pairs, of which each instance but the last keeps one.
  EXPECT_EQ(scene.instances.coarse_edges, 42);
  EXPECT_EQ(scene.instances.fine_edges, 14);
}

TEST(Instances, DepthFirstNeedsLessMemory) {
  const Scene scene = MakeScene(GraphOf(kStages), "fp32", 768);
  // a1 in depth-first order: its 512 and 256 bytes beside c2's, b2's and a2's results of 256; in
  // breadth-first order a8's beside seven of a's.
  EXPECT_EQ(PeakBytes(scene.WalkIn(DepthFirstOrder(scene.instances))), 768 + 3 * 256);
  EXPECT_EQ(PeakBytes(scene.WalkIn(BreadthFirstOrder(scene.instances))), 768 + 7 * 256);
}

TEST(Instances, AFinerReaderReadsPartsOfAPiece) {
  SubGraph coarse{{0}, {.factor = 2, .axes = {{1, 0}}}};
  SubGraph fine{{1}, {.factor = 6, .axes = {{2, 0}}}};
  const LayeredGraph layered = FormLayers(
      GraphOf("input x f32[12,4]\noutput y = softmax(softmax(x) axis=1) axis=1\n"), "fp32");
  ASSERT_EQ(layered.layers.size(), 2u);
  const Edge between{1, 0};
  EXPECT_EQ(PiecesRead(layered, coarse, fine, between, 2), std::pair(int64_t{0}, int64_t{0}));
  EXPECT_EQ(PiecesRead(layered, coarse, fine, between, 3), std::pair(int64_t{1}, int64_t{1}));
  EXPECT_EQ(PiecesRead(layered, fine, coarse, Edge{1, 0}, 0), std::pair(int64_t{0}, int64_t{5}));
  fine.split.axes = {{1, 0}};
  coarse.split.axes = {{2, 0}};
  EXPECT_EQ(PiecesRead(layered, fine, coarse, between, 1), std::pair(int64_t{3}, int64_t{5}));
}

// ResNet-50 at the published batch: the stages, cut at down-sampling, and the published order.
TEST(Instances, OfResNet50AreThePublishedOnes) {
  MemoryWeights weights;
  const auto model = BuildZooModel("resnet50", {.batch = 16}, &weights);
  ASSERT_TRUE(model.ok());
  const auto graph = CleanUp(*model, BuiltInRules());
  ASSERT_TRUE(graph.ok());
  const DeviceSpec chip = LoadSpec(AG_SOURCE_DIR, "stcp920");
  const ClusterBuffers buffers = *BuffersOf(chip);
  const Scene scene = MakeScene(*graph, "fp16", buffers.global_bytes);
  EXPECT_EQ(FactorsOf(scene), (std::vector<int64_t>{8, 4, 2, 1}));
  std::vector<int> convolutions;
  for (const SubGraph& sub : scene.subs) {
    convolutions.push_back(0);
    for (const int layer : sub.layers) {
      convolutions.back() +=
          graph->node(scene.layered.layers[layer].nodes[0]).op == OpKind::kConv ? 1 : 0;
    }
  }
  EXPECT_EQ(convolutions, (std::vector<int>{13, 13, 19, 8}));
  const std::vector<int> depth = DepthFirstOrder(scene.instances);
  EXPECT_EQ(FormatOrder(scene.instances, depth), kPublishedOrder);
  const Walk walk = scene.WalkIn(depth);
  EXPECT_LT(PeakBytes(walk), PeakBytes(scene.WalkIn(BreadthFirstOrder(scene.instances))));
}

TEST(Walk, SpillsWhatLivesLongest) {
  const Scene scene = MakeScene(GraphOf(kStages), "fp32", 768);
  Walk walk = scene.WalkIn(DepthFirstOrder(scene.instances));
  PutIntoBuffers({}, {.local_bytes = 0, .global_bytes = 1536}, walk);
  EXPECT_EQ(CountLevels(scene.layered, walk).memory, 1);  // The output.
  EXPECT_EQ(CountLevels(scene.layered, walk).memory_bytes, 0);
  // a1 has 1536 bytes beside it: c2's result waits from the seventh step to the last.
  walk = scene.WalkIn(DepthFirstOrder(scene.instances));
  PutIntoBuffers({}, {.local_bytes = 0, .global_bytes = 1280}, walk);
  const LevelCounts counts = CountLevels(scene.layered, walk);
  EXPECT_EQ(counts.memory, 2);
  EXPECT_EQ(counts.memory_bytes, 256);
  EXPECT_EQ(counts.global, 2);
  for (const Piece& piece : walk.pieces) {
    if (piece.level != MemoryLevel::kMemory) continue;
    EXPECT_EQ(piece.last - piece.first, 8);
  }
}

TEST(Walk, KeepsResultsLocalThatNobodyElseReads) {
  const Graph graph = GraphOf(
      "input x f32[4,4]\nw = const f32[4,4] seed 1\n"
      "output y = softmax(softmax(matmul(x, w)) axis=1) axis=1\n");
  const Scene scene = MakeScene(graph, "fp32", 1000);
  Walk walk = scene.WalkIn({0});
  PutIntoBuffers({}, {.local_bytes = 128, .global_bytes = 1000}, walk);
  EXPECT_EQ(CountLevels(scene.layered, walk).local, 2);
  PutIntoBuffers({{scene.layered.last(0), 0}}, {.local_bytes = 128, .global_bytes = 1000}, walk);
  EXPECT_EQ(CountLevels(scene.layered, walk).global, 1);
  PutIntoMemory(walk);
  EXPECT_EQ(CountLevels(scene.layered, walk).memory, 3);
}

TEST(CoreBinding, PlainFromTheOutermostAxis) {
  EXPECT_EQ(PlainBinding({16, 4}, 8, Layout::kPlain), (Binding{8, 1}));
  EXPECT_EQ(PlainBinding({2, 64, 56, 56}, 8, Layout::kPlain), (Binding{2, 4, 1, 1}));
  EXPECT_EQ(PlainBinding({2, 64, 56, 56}, 8, Layout::kChannelsLast), (Binding{2, 1, 4, 1}));
  EXPECT_EQ(PlainBinding({1, 197, 768}, 8, Layout::kPlain), (Binding{1, 1, 8}));
  EXPECT_EQ(PlainBinding({3, 5}, 8, Layout::kPlain), (Binding{1, 1}));
}

CoreBindings BindingsOf(const std::string& text) {
  const Scene scene = MakeScene(GraphOf(text), "fp32", 1 << 20);
  return BindCores(scene.layered, scene.subs[0], 8, Layout::kPlain);
}

TEST(CoreBinding, RowsStayOnTheirCores) {
  const CoreBindings rows = BindingsOf(
      "input x f32[16,4]\nw = const f32[4,4] seed 1\n"
      "output y = matmul(softmax(x) axis=1, w)\n");
  EXPECT_TRUE(rows.global.empty());
  EXPECT_EQ(rows.redistributions, 0);
  for (const auto& [id, binding] : rows.of) EXPECT_EQ(binding, (Binding{8, 1}));
}

TEST(CoreBinding, ColumnsOfAProductNeedAllOfTheOperand) {
  const CoreBindings columns = BindingsOf(
      "input x f32[2,8]\nw = const f32[8,8] seed 1\n"
      "output y = matmul(softmax(x) axis=1, w)\n");
  EXPECT_EQ(columns.global, (std::set<Edge>{{1, 0}}));
  EXPECT_EQ(columns.redistributions, 1);
}

TEST(CoreBinding, TwoReadersThatWantOtherBindings) {
  // One reader is bound by rows, the other, a transpose, by columns.
  const CoreBindings both = BindingsOf(
      "input x f32[8,8]\nh = softmax(x) axis=1\noutput y = softmax(h) axis=1\n"
      "output z = softmax(transpose(h) perm=[1,0]) axis=1\n");
  EXPECT_EQ(both.redistributions, 1);
  EXPECT_EQ(both.global.size(), 1u);
}

// One byte and one operation a nanosecond.
DeviceSpec SlowChip(int64_t global_bytes) {
  return *ParseDeviceSpec(fmt::format(
      "name t\ndtypes f32\ncores 1\nclusters 1\nunits 2\nflops_per_second 1e9\n"
      "vector_flops_per_second 1e9\nbytes_per_second 1e9\nlocal_bytes 1\n"
      "local_bytes_per_second 1e9\nglobal_bytes {}\nglobal_bytes_per_second 1e9\nlaunch_ns 100\n"
      "pattern a = {{elementwise}} layouts any\n",
      global_bytes));
}

TEST(Timeline, LoadsWeightsBehindTheLayerBefore) {
  // Each product: 256 bytes of weights, 512 operations, 128 bytes in and 128 out.
  const Graph graph = GraphOf(
      "input x f32[4,8]\nw = const f32[8,8] seed 1\nv = const f32[8,8] seed 2\n"
      "output y = matmul(matmul(x, w), v)\n");
  const Scene scene = MakeScene(graph, "fp32", 10'000);
  const auto time = [&](int64_t global_bytes, bool across_layers) {
    const DeviceSpec spec = SlowChip(global_bytes);
    Walk walk = scene.WalkIn({0});
    PutIntoBuffers({}, *BuffersOf(spec), walk);
    return TimelineNs(scene.layered, walk, spec, {.across_layers = across_layers});
  };
  EXPECT_EQ(time(512, false), 2 * (256 + 612));
  EXPECT_EQ(time(512, true), 256 + 612 + 612);
  // Beside the 256 bytes of the first product's tensors there is room for half of the weights.
  EXPECT_EQ(time(384, true), 256 + 612 + 128 + 612);
}

TEST(Timeline, VectorWorkRunsBesideMatrixWork) {
  const Graph graph =
      GraphOf("input x f32[4,8]\nw = const f32[8,8] seed 1\noutput y = relu(matmul(x, w))\n");
  const Scene scene = MakeScene(graph, "fp32", 10'000);
  const DeviceSpec spec = SlowChip(512);
  Walk walk = scene.WalkIn({0});
  PutIntoBuffers({}, *BuffersOf(spec), walk);
  EXPECT_EQ(TimelineNs(scene.layered, walk, spec, {.across_layers = false}), 256 + 100 + 512 + 32);
  EXPECT_EQ(TimelineNs(scene.layered, walk, spec, {.across_layers = true}), 256 + 100 + 512);
  EXPECT_EQ(Message(BuffersOf(SmallSpec()).status()),
            "small: no buffers (clusters, global_bytes, ...)");
}

}  // namespace
}  // namespace ag
