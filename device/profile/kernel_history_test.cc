#include "device/profile/kernel_history.h"

#include <gtest/gtest.h>

#include "graph/text_form.h"

namespace ag {
namespace {

GroupProblem ReluOf(int64_t size) {
  GroupProblem problem;
  problem.graph = *ParseGraph(fmt::format("input x f32[{}]\noutput y = relu(x)", size));
  problem.pattern = "chain";
  problem.input_layouts = problem.output_layouts = {Layout::kPlain};
  return problem;
}

Measurement TimesOfTwo(double a_ns, double b_ns) {
  Measurement measured{.latency = {.median_ns = a_ns}, .kernel = "a"};
  measured.alternatives = {{"b", b_ns}};
  return measured;
}

const std::vector<std::string> kThreeKernels = {"a", "b", "c"};

TEST(KernelHistory, ExpectsWhatNearShapesSay) {
  KernelHistory history;
  EXPECT_EQ(history.Promising(ReluOf(64), kThreeKernels), kThreeKernels);
  history.Add(ReluOf(64), TimesOfTwo(10, 40));
  const auto expected = history.Expect(ReluOf(64), kThreeKernels);
  EXPECT_NEAR(expected[0].value(), 1, 1e-9);
  EXPECT_NEAR(expected[1].value(), 4, 1e-9);
  EXPECT_FALSE(expected[2].has_value());
  for (const auto& none : history.Expect(ReluOf(1024), kThreeKernels)) EXPECT_FALSE(none);  // Far.
  GroupProblem other = ReluOf(64);
  other.cores = 1;  // Of another kind.
  for (const auto& none : history.Expect(other, kThreeKernels)) EXPECT_FALSE(none);
}

TEST(KernelHistory, TheNearestCountsMost) {
  KernelHistory history;
  history.Add(ReluOf(64), TimesOfTwo(40, 10));
  history.Add(ReluOf(128), TimesOfTwo(10, 40));
  EXPECT_LT(history.Expect(ReluOf(64), kThreeKernels)[1].value(), 1.2);
  EXPECT_LT(history.Expect(ReluOf(130), kThreeKernels)[0].value(), 1.2);
}

TEST(KernelHistory, LeavesOutWhatLostTwice) {
  KernelHistory history;
  history.Add(ReluOf(64), TimesOfTwo(10, 40));
  EXPECT_EQ(history.Promising(ReluOf(64), kThreeKernels),
            (std::vector<std::string>{"a", "c", "b"}));
  history.Add(ReluOf(80), TimesOfTwo(10, 20));
  EXPECT_EQ(history.Promising(ReluOf(64), kThreeKernels), (std::vector<std::string>{"a", "c"}));
  // The device's guess is always tried.
  EXPECT_EQ(history.Promising(ReluOf(64), {"b", "a"}), (std::vector<std::string>{"a", "b"}));
  history.Add(ReluOf(96), TimesOfTwo(10, 12));
  EXPECT_EQ(history.Promising(ReluOf(64), kThreeKernels).size(), 3u);
}

}  // namespace
}  // namespace ag
