#include "device/cpu/strided.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/random.h"

namespace ag::cpu {
namespace {

// Does the same copy element by element.
void Naive(const std::vector<CopyAxis>& axes, size_t axis, const int32_t* from, int32_t* to) {
  if (axis == axes.size()) {
    *to = *from;
    return;
  }
  for (int64_t i = 0; i < axes[axis].size; ++i) {
    Naive(axes, axis + 1, from + i * axes[axis].from, to + i * axes[axis].to);
  }
}

// Random boxes out of random tensors, permuted, repeated and reversed.
TEST(Copy, MatchesElementByElement) {
  constexpr uint64_t kSeed = 7;
  Random random(kSeed);
  for (int round = 0; round < 500; ++round) {
    const auto rank = static_cast<size_t>(random.Between(1, 5));
    std::vector<int64_t> dims(rank), order(rank);
    for (int64_t& d : dims) d = random.Between(1, round % 50 == 0 ? 70 : 7);
    std::iota(order.begin(), order.end(), 0);
    for (size_t i = rank; i-- > 1;) std::swap(order[i], order[random.Below(i + 1)]);
    const std::vector<int64_t> from = RowMajorStrides(dims);
    std::vector<int64_t> out_dims;
    for (const int64_t axis : order) out_dims.push_back(dims[axis]);
    const std::vector<int64_t> to = RowMajorStrides(out_dims);
    const int64_t elements =
        std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
    if (elements > 2'000'000) continue;
    std::vector<CopyAxis> axes;
    int64_t offset = 0;
    for (size_t i = 0; i < rank; ++i) {
      int64_t stride = from[order[i]];
      const uint64_t form = random.Below(8);
      if (form == 0) stride = 0;
      if (form == 1) {
        offset += (dims[order[i]] - 1) * stride;
        stride = -stride;
      }
      axes.push_back({out_dims[i], stride, to[i]});
    }
    std::vector<int32_t> source(elements), expected(elements, -1), actual(elements, -1);
    std::iota(source.begin(), source.end(), 0);
    Naive(axes, 0, source.data() + offset, expected.data());
    Copy(axes, offset, 0, sizeof(int32_t)).Run(2, source.data(), actual.data());
    ASSERT_EQ(actual, expected) << "seed " << kSeed << " round " << round;
  }
}

// Sizes around whole blocks of 8 and pairs of them, inside of wider lines.
TEST(Copy, SwapsTwoAxesOfAnySize) {
  for (int64_t rows = 1; rows <= 35; rows += rows < 18 ? 1 : 5) {
    for (int64_t columns = 1; columns <= 35; columns += columns < 18 ? 1 : 5) {
      const int64_t from_line = rows + 3, to_line = columns + 2;
      std::vector<int32_t> source(columns * from_line), expected(rows * to_line, -1);
      std::iota(source.begin(), source.end(), 0);
      std::vector<int32_t> actual = expected;
      const std::vector<CopyAxis> axes = {{rows, 1, to_line}, {columns, from_line, 1}};
      Naive(axes, 0, source.data(), expected.data());
      Copy(axes, 0, 0, sizeof(int32_t)).Run(1, source.data(), actual.data());
      ASSERT_EQ(actual, expected) << rows << " rows, " << columns << " columns";
    }
  }
}

TEST(Copy, OfNothingDoesNothing) {
  int32_t to = 5;
  Copy({{0, 1, 1}}, 0, 0, sizeof(int32_t)).Run(1, nullptr, &to);
  EXPECT_EQ(to, 5);
}

}  // namespace
}  // namespace ag::cpu
