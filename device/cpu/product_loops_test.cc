// The loops of every instruction set that this machine has, against products number by number.
#include "device/cpu/product_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "device/cpu/loops_testing.h"

namespace ag::cpu {
namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

// Number i of a row in a tile, and the weight of a column for it.
struct Sides {
  Sides(const ProductLoops& loops, int64_t rows, int64_t vectors, int64_t k)
      : rows(rows), k(k), lanes(loops.lanes), left(k * rows, 1), right(vectors * k * lanes, 2) {}
  double Sum(int64_t row, int64_t column) const {
    double sum = 0;
    for (int64_t i = 0; i < k; ++i) {
      const float* weights = right.data() + (column / lanes * k + i) * lanes;
      sum += double{left.data()[i * rows + row]} * weights[column % lanes];
    }
    return sum;
  }
  int64_t rows, k, lanes;
  Waves left, right;
};

// Every size of a tile of every instruction set.
template <class Check>
void ForEachTile(const Check& check) {
  for (const std::string& isa : UsableInstructionSets()) {
    const ProductLoops& loops = ProductLoopsFor(isa);
    for (int64_t rows = 1; rows <= loops.rows; ++rows) {
      for (int64_t vectors = 1; vectors <= loops.vectors; ++vectors) {
        SCOPED_TRACE(isa + " " + std::to_string(rows) + " rows " + std::to_string(vectors));
        check(loops, rows, vectors);
      }
    }
  }
}

ProductTile TileOf(const Sides& sides, int64_t vectors) {
  return {.rows = sides.rows,
          .vectors = vectors,
          .k = sides.k,
          .left = sides.left.data(),
          .right = sides.right.data(),
          .right_step = sides.k * sides.lanes};
}

TEST(ProductLoops, SumsAddUp) {
  ForEachTile([](const ProductLoops& loops, int64_t rows, int64_t vectors) {
    const Sides sides(loops, rows, vectors, 7);
    const int64_t width = vectors * loops.lanes;
    std::vector<float> sums(rows * width, kNone);
    ProductTile tile = TileOf(sides, vectors);
    loops.add(tile, sums.data());
    tile.start = sums.data();
    loops.add(tile, sums.data());  // The same again.
    for (int64_t i = 0; i < rows * width; ++i) {
      ASSERT_NEAR(sums[i], 2 * sides.Sum(i / width, i % width), 1e-5) << i;
    }
  });
}

TEST(ProductLoops, TailsComeBehindTheSums) {
  ForEachTile([](const ProductLoops& loops, int64_t rows, int64_t vectors) {
    const Sides sides(loops, rows, vectors, 5);
    const int64_t width = vectors * loops.lanes, step = loops.lanes + 3, line = vectors * step + 1;
    const Waves start(rows * width, 3), bias(width, 4), residual(rows * line, 5);
    std::vector<float> results(rows * line, 99.0f);
    float* to[kProductRowsMax];
    const float* added[kProductRowsMax];
    for (int64_t r = 0; r < rows; ++r) {
      to[r] = results.data() + r * line;
      added[r] = residual.data() + r * line;
    }
    ProductTile tile = TileOf(sides, vectors);
    tile.start = start.data();
    loops.finish(tile, {.bias = bias.data(),
                        .residual = added,
                        .ops = {{.low = -0.5f, .high = 0.75f}},
                        .to = to,
                        .to_step = step});
    int64_t written = 0;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < width; ++c) {
        const int64_t at = r * line + c / loops.lanes * step + c % loops.lanes;
        const double sum =
            sides.Sum(r, c) + start.data()[r * width + c] + bias.data()[c] + residual.data()[at];
        ASSERT_NEAR(results[at], std::clamp(sum, -0.5, 0.75), 1e-5) << r << " " << c;
        results[at] = 99.0f;
        ++written;
      }
    }
    EXPECT_EQ(written, rows * width);
    EXPECT_EQ(std::ranges::count(results, 99.0f), rows * line);  // Nothing else was touched.
  });
}

TEST(ProductLoops, NaNStaysNaNWithinBounds) {
  ForEachTile([](const ProductLoops& loops, int64_t rows, int64_t vectors) {
    const Sides sides(loops, rows, vectors, 1);
    const int64_t width = vectors * loops.lanes;
    sides.left.data()[0] = kNone;  // Of the first row.
    std::vector<float> results(rows * width);
    float* to[kProductRowsMax];
    for (int64_t r = 0; r < rows; ++r) to[r] = results.data() + r * width;
    loops.finish(TileOf(sides, vectors), {.ops = {{.low = 0}}, .to = to, .to_step = loops.lanes});
    for (int64_t i = 0; i < rows * width; ++i) {
      EXPECT_EQ(std::isnan(results[i]), i < width) << i;
    }
  });
}

TEST(ProductLoops, HardSwishComesBehindTheBounds) {
  ForEachTile([](const ProductLoops& loops, int64_t rows, int64_t vectors) {
    const Sides sides(loops, rows, vectors, 60);
    const int64_t width = vectors * loops.lanes;
    std::vector<float> results(rows * width);
    float* to[kProductRowsMax];
    for (int64_t r = 0; r < rows; ++r) to[r] = results.data() + r * width;
    loops.finish(TileOf(sides, vectors),
                 {.ops = {{.low = -5}, true}, .to = to, .to_step = loops.lanes});
    for (int64_t i = 0; i < rows * width; ++i) {
      const double x = std::max(sides.Sum(i / width, i % width), -5.0);
      ASSERT_NEAR(results[i], x * std::clamp(x + 3, 0.0, 6.0) / 6, 1e-4) << i;
    }
  });
}

TEST(ProductLoops, WeightsAreScaledByRow) {
  for (const std::string& isa : UsableInstructionSets()) {
    const ProductLoops& loops = ProductLoopsFor(isa);
    constexpr int64_t kVectors = 3, kRows = 5;
    const Waves weights(kVectors * kRows * loops.lanes, 1), factors(kRows, 2),
        to(kVectors * kRows * loops.lanes, 3);
    loops.scale(weights.data(), factors.data(), kVectors, kRows, to.data());
    for (int64_t i = 0; i < kVectors * kRows * loops.lanes; ++i) {
      ASSERT_EQ(to.data()[i], weights.data()[i] * factors.data()[i / loops.lanes % kRows]);
    }
  }
}

// Rows of 23 numbers in pieces of 8, some of them zeros.
TEST(ProductLoops, RowsArePackedFromBlocks) {
  constexpr int64_t kNumbers = 23, kBlock = 8, kPlane = 100, kRow = 40;
  const Waves numbers(4 * kPlane, 1);
  for (int64_t count = 1; count <= kProductRowsMax; ++count) {
    for (const int64_t outside : {int64_t{-1}, count / 2}) {
      const float* rows[kProductRowsMax + 1];
      for (int64_t r = 0; r < count; ++r) rows[r] = numbers.data() + r * kBlock % kRow;
      rows[count] = numbers.data();  // Of the next tile.
      if (outside >= 0) rows[outside] = nullptr;
      std::vector<float> packed(count * kNumbers + 1, 99.0f);
      PackProductRows({rows, count, count + 1}, kBlock, kPlane, kNumbers, packed.data());
      for (int64_t i = 0; i < count * kNumbers; ++i) {
        const int64_t number = i / count, row = i % count;
        const float expected =
            row == outside ? 0 : rows[row][number / kBlock * kPlane + number % kBlock];
        ASSERT_EQ(packed[i], expected) << count << " rows, " << i;
      }
      EXPECT_EQ(packed.back(), 99.0f) << count;
    }
  }
}

}  // namespace
}  // namespace ag::cpu
