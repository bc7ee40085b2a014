// Contractions by their shape: what of a group is one, its blocks, and the estimates from them,
// against values worked out by hand.
#include "plan/fusion/contraction_blocks.h"

#include <gtest/gtest.h>

#include "plan/fusion/group_time.h"
#include "plan/fusion/learned_times.h"
#include "plan/testing/testing.h"

namespace ag {
namespace {

// 8 cores, blocks of 16 x 16. A core computes 10 operations and loads 1 byte a nanosecond.
DeviceSpec Spec(double split_ns = 200) {
  DeviceSpec spec = SmallSpec();
  spec.cores = 8;
  spec.stream_cores = 0;
  spec.block_outputs = 256;
  spec.flops_per_second = 1e10;
  spec.bytes_per_second = 1e12;
  spec.cache_bytes_per_second = 0;
  spec.core_bytes_per_second = 1e9;
  spec.launch_ns = 100;
  spec.contraction_ns = 50;
  spec.split_ns = split_ns;
  return spec;
}

GroupProblem ProblemOf(const std::string& text, int cores = 0) {
  GroupProblem problem{.graph = GraphOf(text), .pattern = "dense", .cores = cores};
  problem.input_layouts.assign(problem.graph.inputs().size(), Layout::kPlain);
  problem.output_layouts.assign(problem.graph.outputs().size(), Layout::kPlain);
  return problem;
}

std::string Product(int rows, int depth, int columns) {
  return fmt::format("input x f32[{0},{1}]\nw = const f32[{1},{2}] seed 1\noutput matmul(x, w)\n",
                     rows, depth, columns);
}

std::string Convolution(int in, int out, int group, int side) {
  return fmt::format(
      "input x f32[1,{},8,8]\nw = const f32[{},{},{},{}] seed 1\nb = const f32[{}] seed 2\n"
      "output conv(x, w, b) strides=[1,1] pads=[{},{},{},{}] dilations=[1,1] group={}\n",
      in, out, in / group, side, side, out, side / 2, side / 2, side / 2, side / 2, group);
}

TEST(Contractions, AreFoundByTheirShape) {
  const struct {
    const char* name;
    std::string text;
    const char* precision;
    std::optional<Contraction> found;
  } cases[] = {
      {"a product", Product(4, 5, 6), "fp32", {{1, 4, 6, 5, 4}}},
      {"stored in 16 bits", Product(4, 5, 6), "fp16", {{1, 4, 6, 5, 2}}},
      {"rows in two axes",
       "input x f32[2,4,5]\nw = const f32[5,6] seed 1\noutput matmul(x, w)\n",
       "fp32",
       {{1, 8, 6, 5, 4}}},
      {"a batch of products",
       "input x f32[3,4,5]\ninput y f32[3,5,6]\noutput matmul(x, y)\n",
       "fp32",
       {{3, 4, 6, 5, 4}}},
      {"one left side for all",
       "input x f32[4,5]\ninput y f32[3,5,6]\noutput matmul(x, y)\n",
       "fp32",
       {{3, 4, 6, 5, 4}}},
      {"a convolution", Convolution(16, 32, 1, 3), "tf32", {{1, 64, 32, 144, 4}}},
      {"in groups", Convolution(16, 32, 4, 3), "fp32", {{4, 64, 8, 36, 4}}},
      {"not a depthwise one", Convolution(16, 16, 16, 3), "fp32", std::nullopt},
      {"nothing to multiply", "input x f32[4,5]\noutput relu(x)\n", "fp32", std::nullopt},
      {"an empty one", Product(0, 5, 6), "fp32", std::nullopt},
      {"the larger of two",
       "input x f32[4,5]\nw = const f32[5,6] seed 1\nv = const f32[6,90] seed 2\n"
       "output matmul(matmul(x, w), v)\n",
       "fp32",
       {{1, 4, 90, 6, 4}}},
  };
  for (const auto& c : cases) {
    EXPECT_TRUE(FindContraction(GraphOf(c.text), c.precision) == c.found) << c.name;
  }
}

TEST(Contractions, AreCutIntoBlocks) {
  const struct {
    const char* name;
    Contraction contraction;
    int cores;
    ContractionBlocks cut;
  } cases[] = {
      {"one", {1, 16, 16, 10, 4}, 8, {1, 2 * 16 * 10 * 4}},
      {"edges count whole", {1, 17, 40, 10, 4}, 8, {6, 6 * 2 * 16 * 10 * 4}},
      {"a row fills no block", {1, 1, 64, 10, 2}, 8, {4, 4 * 2 * 16 * 10 * 2}},
      {"products have their own", {3, 1, 16, 10, 4}, 8, {3, 3 * 2 * 16 * 10 * 4}},
      // 16 of 16 x 16, or 4 of 32 x 32 that load half.
      {"larger ones fill 4 cores", {1, 64, 64, 10, 4}, 4, {4, 4 * 2 * 32 * 10 * 4}},
      {"but not 5", {1, 64, 64, 10, 4}, 5, {16, 16 * 2 * 16 * 10 * 4}},
      {"up to 256 x 256", {1, 1024, 1024, 10, 4}, 1, {16, 16 * 2 * 256 * 10 * 4}},
  };
  for (const auto& c : cases) {
    const ContractionBlocks cut = BlocksOf(c.contraction, Spec(), c.cores);
    EXPECT_EQ(cut.blocks, c.cut.blocks) << c.name;
    EXPECT_EQ(cut.load_bytes, c.cut.load_bytes) << c.name;
  }
}

TEST(Contractions, TakeTheTimeOfTheirBlocks) {
  const struct {
    const char* name;
    std::string text;
    int cores;
    double split_ns, ns;
    int active_cores;
  } cases[] = {
      // One block loads 2 * 16 * 1024 floats: 131,072 ns.
      {"unsplit", Product(16, 1024, 16), 0, 0, 131'072 + 150, 1},
      // In 8 parts; each sum is written and read 8 times at 1,000 bytes a nanosecond.
      {"split over all cores", Product(16, 1024, 16), 0, 200, 16'384 + 200 + 16.384 + 150, 8},
      {"over those that it may have", Product(16, 1024, 16), 4, 200, 32'768 + 200 + 8.192 + 150, 4},
      // Two parts take 1,024 ns and 2,000 ns for adding them up.
      {"a short sum is not worth it", Product(16, 16, 16), 0, 2000, 2048 + 150, 1},
      // 5 blocks: no second part has cores.
      {"blocks for most cores", Product(16, 1024, 80), 0, 200, 131'072 + 150, 5},
      // 64 blocks in 8 rounds, or 16 of twice the side: 16 * 2 * 32 * 16 floats over 8 cores.
      {"all cores", Product(128, 16, 128), 0, 200, 8192 + 150, 8},
      // 512 operations on two cores.
      {"by outputs where it is no contraction", "input x f32[32,16]\noutput relu(x)\n", 0, 200,
       25.6 + 100, 0},
  };
  for (const auto& c : cases) {
    const GroupEstimate estimate = EstimateGroup(ProblemOf(c.text, c.cores), Spec(c.split_ns));
    EXPECT_DOUBLE_EQ(estimate.ns, c.ns) << c.name;
    EXPECT_EQ(estimate.active_cores, c.active_cores) << c.name;
  }
}

TEST(Contractions, HaveAFixedTimeOfTheirOwn) {
  DeviceSpec spec = SmallSpec();
  const GroupProblem product = ProblemOf(Product(8, 16, 4));
  const double ns = RooflineNs(product, spec);
  spec.contraction_ns = 70;
  EXPECT_DOUBLE_EQ(RooflineNs(product, spec), ns + 70);
  EXPECT_EQ(EstimateGroup(product, spec).active_cores, 0);
  const GroupProblem relu = ProblemOf("input x f32[8,16]\noutput relu(x)\n");
  EXPECT_DOUBLE_EQ(RooflineNs(relu, spec), RooflineNs(relu, SmallSpec()));
}

// The cores reach the schedule.
TEST(Contractions, CarryTheirCoresIntoRooflineAndLearnedTimes) {
  const DeviceSpec spec = Spec();
  const GroupProblem product = ProblemOf(Product(16, 1024, 16));
  EXPECT_EQ(RooflineTimes(spec).Time(product).active_cores, 8);
  EXPECT_EQ(LearnedTimes(spec, nullptr).Time(product).active_cores, 8);
}

}  // namespace
}  // namespace ag
