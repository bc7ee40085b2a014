#include "graph/contraction.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "base/random.h"

namespace ag {
namespace {

// On a machine of any vector width, the results have the bits of the plain loop.
TEST(ContractionTest, GivesTheBitsOfThePlainLoop) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    const int64_t rows = random.Between(1, 9), depth = random.Between(0, 50);
    const int64_t columns = random.Between(1, kBlockColumns);
    std::vector<double> a(static_cast<size_t>(rows * depth));
    std::vector<double> b(static_cast<size_t>(depth * kBlockColumns));
    for (double& value : a) value = random.Normal();
    for (double& value : b) value = random.Normal();
    const bool adds = random.Between(0, 1) == 1;
    std::vector<double> out(static_cast<size_t>(rows * columns));
    for (double& value : out) value = random.Normal();
    const std::vector<double> before = out;
    Multiply<double>({.a = a.data(),
                      .rows = rows,
                      .depth = depth,
                      .panels = b.data(),
                      .columns = columns,
                      .out = out.data(),
                      .out_stride = columns,
                      .adds = adds});
    for (int64_t m = 0; m < rows; ++m) {
      for (int64_t j = 0; j < columns; ++j) {
        double sum = adds ? before[static_cast<size_t>(m * columns + j)] : 0;
        for (int64_t k = 0; k < depth; ++k) {
          const int64_t panel = j / kPanelColumns * kPanelColumns * depth;
          const int64_t at = panel + k * kPanelColumns + j % kPanelColumns;
          sum += a[static_cast<size_t>(m * depth + k)] * b[static_cast<size_t>(at)];
        }
        ASSERT_EQ(out[static_cast<size_t>(m * columns + j)], sum) << "seed " << seed;
      }
    }
  }
}

TEST(ContractionTest, ASumOfNothingIsZeroOrWhatWasThere) {
  for (const bool adds : {false, true}) {
    std::vector<int64_t> out = {1, 2};
    Multiply<int64_t>({.rows = 1, .columns = 2, .out = out.data(), .out_stride = 2, .adds = adds});
    EXPECT_EQ(out, (adds ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{0, 0}));
  }
}

TEST(ContractionTest, ParallelForCoversEverythingOnce) {
  for (const int threads : {0, 1, 3, 8}) {
    for (const int64_t count : {0, 1, 2, 100}) {
      std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
      ParallelFor(threads, count, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
      });
      for (const auto& times : seen) EXPECT_EQ(times, 1);
    }
  }
}

}  // namespace
}  // namespace ag
