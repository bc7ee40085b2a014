// The loop of every instruction set that this machine has, against the definition.
#include "device/cpu/softmax_loops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "device/cpu/loops_testing.h"

namespace ag::cpu {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<float> RowsOf(const std::string& isa, std::vector<float> x, int64_t n) {
  std::vector<float> y(x.size());
  SoftmaxLoopsFor(isa).rows(x.data(), y.data(), static_cast<int64_t>(x.size()) / n, n);
  return y;
}

TEST(SoftmaxLoops, RowsOfEveryLengthAddUpToOne) {
  for (const std::string& isa : UsableInstructionSets()) {
    for (const int64_t n : {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 49, 63, 64, 65, 127, 197, 513}) {
      constexpr int64_t kRows = 3;
      const Waves waves(kRows * n, n);
      std::vector<float> x(waves.data(), waves.data() + kRows * n);
      for (float& value : x) value *= 30;
      const std::vector<float> y = RowsOf(isa, x, n);
      for (int64_t row = 0; row < kRows; ++row) {
        const float* from = x.data() + row * n;
        const double most = *std::max_element(from, from + n);
        double sum = 0;
        for (int64_t i = 0; i < n; ++i) sum += std::exp(from[i] - most);
        for (int64_t i = 0; i < n; ++i) {
          const double expected = std::exp(from[i] - most) / sum;
          // Differences are rounded to floats, and so is what follows from them.
          const double bound = 1e-6 + 2e-7 * (most - from[i]);
          ASSERT_NEAR(y[row * n + i], expected, bound * expected + 1e-30)
              << isa << ", element " << i << " of " << n;
        }
      }
    }
  }
}

TEST(SoftmaxLoops, MaskedElementsAreZeroAndOddOnesMakeTheirRowNan) {
  for (const std::string& isa : UsableInstructionSets()) {
    for (const int64_t n : {3, 16, 21, 70}) {
      std::vector<float> x(4 * n, 1.0f);
      x[1] = -kInf;
      x[2] = -3e38f;
      std::fill_n(x.begin() + n, n, -kInf);
      x[2 * n + 1] = std::nanf("");
      x[3 * n + 1] = kInf;
      const std::vector<float> y = RowsOf(isa, x, n);
      EXPECT_EQ(y[1], 0) << isa;
      EXPECT_EQ(y[2], 0) << isa;
      EXPECT_NEAR(y[0], 1.0 / (n - 2), 1e-6) << isa;
      for (int64_t i = 0; i < n; ++i) {
        EXPECT_TRUE(std::isnan(y[n + i])) << isa << " all are masked";
        EXPECT_TRUE(std::isnan(y[2 * n + i])) << isa << " one is NaN";
      }
      EXPECT_TRUE(std::isnan(y[3 * n + 1])) << isa << " one is infinite";
    }
  }
}

TEST(SoftmaxLoops, MayWriteInPlaceAnywhereInMemory) {
  for (const std::string& isa : UsableInstructionSets()) {
    const Waves waves(200, 3);
    const std::vector<float> x(waves.data() + 1, waves.data() + 150);
    const std::vector<float> expected = RowsOf(isa, x, 149);
    std::vector<float> in_place(1, 7.0f);
    in_place.insert(in_place.end(), x.begin(), x.end());
    in_place.push_back(8.0f);
    SoftmaxLoopsFor(isa).rows(&in_place[1], &in_place[1], 1, 149);
    EXPECT_EQ(in_place.front(), 7.0f);
    EXPECT_EQ(in_place.back(), 8.0f);
    EXPECT_EQ(std::vector<float>(in_place.begin() + 1, in_place.end() - 1), expected) << isa;
  }
}

}  // namespace
}  // namespace ag::cpu
