#include "plan/fusion/kernel_estimate.h"

#include <gtest/gtest.h>

#include "graph/text_form.h"
#include "plan/fusion/group_time.h"

namespace ag {
namespace {

constexpr std::string_view kTwoCores = R"(
name d
dtypes f32
cores 2
flops_per_second 1e9
bytes_per_second 1e9
launch_ns 100
pattern conv = Conv layouts channels_last,plain
pattern dense = MatMul layouts plain
pattern chain = {elementwise}+ layouts any
)";

GroupProblem ProblemOfText(const std::string& pattern, const std::string& text, Layout layout) {
  GroupProblem problem;
  problem.graph = *ParseGraph(text);
  problem.pattern = pattern;
  problem.input_layouts.assign(problem.graph.inputs().size(), layout);
  problem.output_layouts = {layout};
  return problem;
}

double EstimateNs(const GroupProblem& problem, const std::string& kernels) {
  const StatusOr<DeviceSpec> spec = ParseDeviceSpec(std::string(kTwoCores) + kernels);
  AG_CHECK(spec.ok());
  return EstimateGroup(problem, *spec).ns;
}

GroupProblem ThreeByThree(int64_t channels, int64_t side, int64_t group) {
  const std::string text = fmt::format(
      "input x f32[1,{0},{1},{1}]\noutput y = conv(x, const f32[{0},{2},3,3] seed 1, const "
      "f32[{0}] seed 2) strides=[1,1] pads=[1,1,1,1] dilations=[1,1] group={3}",
      channels, side, channels / group, group);
  return ProblemOfText("conv", text, Layout::kChannelsLast);
}

TEST(EstimateKernelNs, AddsWhatIsFixedComputedAndMoved) {
  const GroupProblem relu =
      ProblemOfText("chain", "input x f32[1000]\noutput y = relu(x)", Layout::kPlain);
  // 1000 operations at 0.5 of 2e9 a second, 8000 bytes at 0.8 of 1e9.
  EXPECT_NEAR(EstimateNs(relu, "kernel a = chain share 0.5 bytes 0.8 fixed_ns 50\n"),
              50 + 1000 + 10000, 1e-6);
  EXPECT_NEAR(EstimateNs(relu, ""), 100 + 8000, 1e-6);  // The roofline.
  EXPECT_NEAR(EstimateNs(relu, "kernel a = dense\n"), 100 + 8000, 1e-6);
}

TEST(EstimateKernelNs, TheFastestFamilyCounts) {
  const GroupProblem product = ProblemOfText(
      "dense", "input x f32[4,8]\noutput y = matmul(x, const f32[8,16] seed 1)", Layout::kPlain);
  const std::string slow = "kernel a = dense fixed_ns 9000\n";
  const double without = EstimateNs(product, slow);
  EXPECT_LT(EstimateNs(product, slow + "kernel b = dense product fixed_ns 10\n"), without - 8000);
  EXPECT_EQ(EstimateNs(product, slow + "kernel b = dense full\n"), without);
}

TEST(EstimateKernelNs, LargeConstantsComeFromMemory) {
  const GroupProblem product = ProblemOfText(
      "dense", "input x f32[4,8]\noutput y = matmul(x, const f32[8,16] seed 1)", Layout::kPlain);
  // 512 bytes of constants from memory at 1e9; 128 and 256 others from the cache at 4e9, of which
  // the kernel reaches a half; 1024 operations at 2e9 a second.
  const std::string cached =
      "cache_bytes 1e6\ncache_bytes_per_second 4e9\nkernel a = dense product bytes 0.5\n";
  const double all_near = 512 + (512 + 384) / 2.0;
  EXPECT_NEAR(EstimateNs(product, cached), all_near, 1e-6);
  EXPECT_NEAR(EstimateNs(product, cached + "far_weights_bytes 513\n"), all_near, 1e-6);
  const std::string from_memory = "far_weights_bytes 512\n";
  EXPECT_NEAR(EstimateNs(product, cached + from_memory), 512 + 512 + 384 / 2.0, 1e-6);
  // Fetched ahead.
  const std::string ahead = cached.substr(0, cached.size() - 1) + " far 4\n";
  EXPECT_NEAR(EstimateNs(product, ahead + from_memory), 512 + 512 / 4.0 + 384 / 2.0, 1e-6);
}

TEST(EstimateKernelNs, PointwiseHasOneTapAndNoPadding) {
  const std::string kernels = "kernel a = conv full fixed_ns 1e6\nkernel b = conv pointwise\n";
  const auto estimate = [&](int64_t taps, int64_t pad, int64_t group) {
    return EstimateNs(
        ProblemOfText(
            "conv",
            fmt::format("input x f32[1,8,6,6]\noutput y = conv(x, const f32[8,{0},{1},{1}] "
                        "seed 1, const f32[8] seed 2) strides=[2,2] pads=[{2},{2},{2},{2}] "
                        "dilations=[1,1] group={3}",
                        8 / group, taps, pad, group),
            Layout::kChannelsLast),
        kernels);
  };
  EXPECT_LT(estimate(1, 0, 1), 1e6);
  EXPECT_GT(estimate(1, 1, 1), 1e6);
  EXPECT_GT(estimate(3, 0, 1), 1e6);
  EXPECT_GT(estimate(1, 0, 2), 1e6);
}

TEST(EstimateKernelNs, DepthwiseAndLayoutsAreOfTheirOwn) {
  const std::string kernels =
      "kernel a = conv full fixed_ns 1e6\nkernel b = conv depthwise fixed_ns 2e6\n";
  EXPECT_LT(EstimateNs(ThreeByThree(32, 8, 1), kernels), 2e6);
  EXPECT_GT(EstimateNs(ThreeByThree(32, 8, 32), kernels), 2e6);
  const std::string plain = "kernel a = conv layouts plain fixed_ns 1e6\n";
  EXPECT_LT(EstimateNs(ThreeByThree(32, 8, 1), plain), 1e6);  // By the roofline.
}

TEST(EstimateKernelNs, WinogradMultipliesLessAndReadsMoreWeights) {
  const std::string direct = "kernel a = conv full\n";
  const std::string tiles = direct + "kernel b = conv winograd4\n";
  const std::string small = direct + "kernel b = conv winograd2\n";
  const GroupProblem large = ThreeByThree(64, 32, 1);
  // 2.25 products of 9 are left, 4 of 9 with small tiles.
  EXPECT_LT(EstimateNs(large, tiles), 0.5 * EstimateNs(large, direct));
  EXPECT_LT(EstimateNs(large, small), 0.7 * EstimateNs(large, direct));
  EXPECT_LT(EstimateNs(large, tiles), EstimateNs(large, small));
  const GroupProblem one_tile = ThreeByThree(256, 2, 1);  // The weights are all there is.
  EXPECT_EQ(EstimateNs(one_tile, tiles), EstimateNs(one_tile, direct));
  const GroupProblem few_channels = ThreeByThree(8, 32, 1);
  EXPECT_EQ(EstimateNs(few_channels, tiles), EstimateNs(few_channels, direct));
}

}  // namespace
}  // namespace ag
