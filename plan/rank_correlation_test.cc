#include "plan/rank_correlation.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace ag {
namespace {

using testing::ElementsAre;
using Values = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Ranks, EqualValuesShareTheMean) {
  EXPECT_THAT(Ranks(Values{30, 10, 20}), ElementsAre(3, 1, 2));
  EXPECT_THAT(Ranks(Values{5, 6, 7, 8, 7}), ElementsAre(1, 2, 3.5, 5, 3.5));
  EXPECT_THAT(Ranks(Values{2, 2, 2, 1}), ElementsAre(3, 3, 3, 1));
  EXPECT_THAT(Ranks(Values{kInfinity, 1, kInfinity}), ElementsAre(2.5, 1, 2.5));
  EXPECT_THAT(Ranks(Values{}), ElementsAre());
}

TEST(Spearman, WorkedOutValues) {
  const struct {
    const char* name;
    Values a, b;
    double rho;
  } kCases[] = {
      {"the same order, other distances", {1, 2, 3, 4}, {10, 11, 500, 501}, 1},
      {"the opposite order", {1, 2, 3}, {9, 8, 1}, -1},
      // 1 - 6 (1 + 1) / (4 x 15)
      {"two neighbours swapped", {1, 2, 3, 4}, {1, 3, 2, 4}, 0.8},
      // Differences of ranks 2, 1, 1, 2, 0: 1 - 6 x 10 / (5 x 24)
      {"five", {1, 2, 3, 4, 5}, {3, 1, 4, 2, 5}, 0.5},
      // Ranks 1, 2, 3.5, 5, 3.5: 8 / sqrt(10 x 9.5)
      {"a tie", {1, 2, 3, 4, 5}, {5, 6, 7, 8, 7}, 8 / std::sqrt(95)},
      // Ranks 1.5, 1.5, 3 and 1, 2.5, 2.5: 0.75 / 1.5
      {"a tie on both sides", {1, 1, 2}, {1, 2, 2}, 0.5},
      {"no order on one side", {1, 1, 1}, {1, 2, 3}, 0},
      {"infinity is the last", {1, kInfinity, 3}, {1, 9, 3}, 1},
      {"one value", {1}, {2}, 0},
      {"nothing", {}, {}, 0},
  };
  for (const auto& c : kCases) {
    EXPECT_NEAR(Spearman(c.a, c.b), c.rho, 1e-12) << c.name;
    EXPECT_NEAR(Spearman(c.b, c.a), c.rho, 1e-12) << c.name;
  }
}

}  // namespace
}  // namespace ag
