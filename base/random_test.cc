#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace ag {
namespace {

// The values come from the authors' C code.
TEST(RandomTest, IsSplitMix64) {
  Random zero(0);
  EXPECT_EQ(zero.Next(), 0xe220a8397b1dcdaf);
  EXPECT_EQ(zero.Next(), 0x6e789e6aa1b965f4);
  EXPECT_EQ(zero.Next(), 0x06c45d188009454f);
  Random other(1234567);
  EXPECT_EQ(other.Next(), 6457827717110365317u);
  EXPECT_EQ(other.Next(), 3203168211198807973u);
}

TEST(RandomTest, BelowIsUniform) {
  Random random(1);
  std::vector<int> counts(6);
  for (int i = 0; i < 6000; ++i) ++counts[random.Below(6)];
  // Five standard deviations: sqrt(6000 * 1/6 * 5/6) = 29.
  for (const int count : counts) EXPECT_NEAR(count, 1000, 145);
  EXPECT_EQ(random.Below(1), 0u);
  EXPECT_LT(random.Below((uint64_t{1} << 63) + 1), (uint64_t{1} << 63) + 1);
}

TEST(RandomTest, BetweenIncludesBothEnds) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  Random random(2);
  std::vector<int> counts(3);
  for (int i = 0; i < 300; ++i) ++counts[static_cast<size_t>(random.Between(-1, 1) + 1)];
  for (const int count : counts) EXPECT_GT(count, 50);
  EXPECT_EQ(random.Between(kMin, kMin), kMin);
  EXPECT_EQ(random.Between(kMax, kMax), kMax);
  bool negative = false;
  bool positive = false;
  for (int i = 0; i < 64; ++i) (random.Between(kMin, kMax) < 0 ? negative : positive) = true;
  EXPECT_TRUE(negative && positive);
}

TEST(RandomTest, UnitStaysBelowOne) {
  Random random(3);
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    const double value = random.Unit();
    ASSERT_TRUE(value >= 0 && value < 1);
    sum += value;
  }
  EXPECT_NEAR(sum / 10'000, 0.5, 0.015);  // Five standard deviations: 0.289 / 100.
}

TEST(RandomTest, NormalHasItsMoments) {
  Random random(4);
  constexpr int kCount = 20'000;
  double sum = 0;
  double squares = 0;
  int beyond_two = 0;
  for (int i = 0; i < kCount; ++i) {
    const double value = random.Normal();
    sum += value;
    squares += value * value;
    beyond_two += std::fabs(value) > 2 ? 1 : 0;
  }
  EXPECT_NEAR(sum / kCount, 0, 0.036);     // Five standard deviations: 1 / sqrt(20000).
  EXPECT_NEAR(squares / kCount, 1, 0.05);  // sqrt(2 / 20000) each.
  EXPECT_NEAR(beyond_two / double{kCount}, 0.0455, 0.0075);
}

// Bit for bit: a seed gives the same data on every machine and in every build.
TEST(RandomTest, NormalIsTheSameEverywhere) {
  Random random(5);
  const double expected[] = {-0x1.42a6bbbf4c1dep-1, -0x1.b7b77bbd789f4p-3, -0x1.2fa15d60d6feep+0};
  for (const double value : expected) EXPECT_EQ(random.Normal(), value);
}

}  // namespace
}  // namespace ag
