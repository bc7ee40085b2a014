// The loops of every instruction set that this machine has, against the definitions.
#include "device/cpu/sigmoid_loops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "device/cpu/loops_testing.h"

namespace ag::cpu {
namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity();

std::vector<float> Apply(BlockFn<float> loop, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  loop(x.data(), x.data(), x.data(), y.data(), static_cast<int64_t>(x.size()), 0, 0);
  return y;
}

TEST(SigmoidLoops, AreWithinTheStatedErrorsOverTheirWholeRange) {
  std::vector<float> x;
  for (float value = -110; value < 110; value += 0.00391f) x.push_back(value);
  for (float value = 1e-30f; value < 3e38f; value *= 1.7f) {
    x.push_back(value);
    x.push_back(-value);
  }
  for (const std::string& isa : UsableInstructionSets()) {
    const SigmoidLoops& loops = SigmoidLoopsFor(isa);
    const std::vector<float> sigmoid = Apply(loops.sigmoid, x), swish = Apply(loops.swish, x);
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = 1 / (1 + std::exp(-static_cast<double>(x[i])));
      ASSERT_NEAR(sigmoid[i], exact, 2e-7) << isa << ", of " << x[i];
      const double bound = 2e-7 * std::max(1.0f, std::abs(x[i]));
      ASSERT_NEAR(swish[i], x[i] * exact, bound) << isa << ", of " << x[i];
    }
  }
}

TEST(SigmoidLoops, EveryLengthIsComputedInPlaceAndNoFurther) {
  for (const std::string& isa : UsableInstructionSets()) {
    for (int64_t n = 0; n < 50; ++n) {
      std::vector<float> x(60, 7.0f);
      for (int64_t i = 0; i < n; ++i) x[i] = 0.0f;
      SigmoidLoopsFor(isa).sigmoid(x.data(), x.data(), x.data(), x.data(), n, 0, 0);
      for (int64_t i = 0; i < 60; ++i) ASSERT_EQ(x[i], i < n ? 0.5f : 7.0f) << isa << ", " << n;
    }
  }
}

TEST(SigmoidLoops, OddNumbersGiveWhatTheDefinitionSays) {
  for (const std::string& isa : UsableInstructionSets()) {
    const SigmoidLoops& loops = SigmoidLoopsFor(isa);
    const std::vector<float> x = {kInfinite, -kInfinite, std::nanf(""), 0.0f};
    const std::vector<float> sigmoid = Apply(loops.sigmoid, x), swish = Apply(loops.swish, x);
    EXPECT_EQ(sigmoid[0], 1);
    EXPECT_NEAR(sigmoid[1], 0, 1e-37);
    EXPECT_TRUE(std::isnan(sigmoid[2])) << isa;
    EXPECT_EQ(swish[0], kInfinite);
    EXPECT_TRUE(std::isnan(swish[1])) << isa;
    EXPECT_TRUE(std::isnan(swish[2])) << isa;
    EXPECT_EQ(swish[3], 0);
  }
}

}  // namespace
}  // namespace ag::cpu
