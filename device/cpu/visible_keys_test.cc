#include "device/cpu/visible_keys.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "device/cpu/loops_testing.h"
#include "graph/half.h"

namespace ag::cpu {
namespace {

using Kind = ScoreStep::Kind;

constexpr float kBeyond = std::numeric_limits<float>::infinity();
const float kKept = std::bit_cast<float>(kKeptScore);

// A matrix of 8 queries and 8 keys.
std::vector<float> MatrixOf(float seen, float masked, int64_t window = 8) {
  std::vector<float> matrix;
  for (int64_t q = 0; q < 8; ++q) {
    for (int64_t k = 0; k < 8; ++k) matrix.push_back(k <= q && k + window > q ? seen : masked);
  }
  return matrix;
}

ConstantStep ConstantStepOf(Kind kind, const std::vector<float>& matrix) {
  return ScoreStep{kind, {matrix.data(), 8, 1}};
}

VisibleKeys VisibleOf(const std::vector<ConstantStep>& steps) {
  return VisibleKeys::Of(8, 8, 1, [&](int64_t) { return steps; });
}

std::string RangesOf(const VisibleKeys& visible) {
  if (!visible.any()) return "all";
  std::string text;
  for (int64_t q = 0; q < 8; ++q) {
    const KeyRange range = visible.Of(q, q + 1);
    text += fmt::format("{}{}-{}", q == 0 ? "" : " ", range.first, range.last);
  }
  return text;
}

const std::string kCausal = "0-1 0-2 0-3 0-4 0-5 0-6 0-7 0-8";

TEST(VisibleKeys, AreReadFromMasks) {
  const auto added = MatrixOf(0, -kBeyond), replaced = MatrixOf(kKept, -3.4e38f);
  const auto factors = MatrixOf(1, 0), offsets = MatrixOf(0, 1e4f);
  EXPECT_EQ(RangesOf(VisibleOf({ConstantStepOf(Kind::kAdd, added)})), kCausal);
  EXPECT_EQ(RangesOf(VisibleOf({ConstantStepOf(Kind::kReplace, replaced)})), kCausal);
  EXPECT_EQ(RangesOf(VisibleOf(
                {ConstantStepOf(Kind::kMul, factors), ConstantStepOf(Kind::kSub, offsets)})),
            kCausal);
  EXPECT_EQ(RangesOf(VisibleOf({{}, ConstantStepOf(Kind::kReplace, replaced)})),
            kCausal);  // After a bias.
  EXPECT_EQ(RangesOf(VisibleOf({ConstantStepOf(Kind::kReplace, replaced), {}})),
            "all");  // In front of one.
  EXPECT_EQ(RangesOf(VisibleOf({ConstantStepOf(Kind::kMul, factors)})), "all");
  EXPECT_EQ(RangesOf(VisibleOf({})), "all");
  const auto window = MatrixOf(kKept, -kBeyond, 3);
  EXPECT_EQ(RangesOf(VisibleOf({ConstantStepOf(Kind::kReplace, window)})),
            "0-1 0-2 0-3 1-4 2-5 3-6 4-7 5-8");
  EXPECT_EQ(VisibleOf({ConstantStepOf(Kind::kReplace, window)}).Of(2, 5).last, 5);
  EXPECT_EQ(VisibleOf({ConstantStepOf(Kind::kReplace, window)}).Of(4, 7).first, 2);
}

TEST(VisibleKeys, AreAllWhereAQuerySeesNone) {
  auto masked = MatrixOf(kKept, -kBeyond);
  for (int64_t k = 0; k < 8; ++k) masked[3 * 8 + k] = -kBeyond;
  EXPECT_EQ(RangesOf(VisibleOf({ConstantStepOf(Kind::kReplace, masked)})),
            "0-1 0-2 0-3 0-8 0-5 0-6 0-7 0-8");
}

TEST(VisibleKeys, AreThoseOfAllItems) {
  const auto wide = MatrixOf(kKept, -kBeyond), narrow = MatrixOf(kKept, -kBeyond, 1);
  const VisibleKeys visible = VisibleKeys::Of(8, 8, 2, [&](int64_t item) {
    return std::vector{ConstantStepOf(Kind::kReplace, item == 0 ? narrow : wide)};
  });
  EXPECT_EQ(RangesOf(visible), kCausal);
}

TEST(ChangedKeys, AreThoseWhoseScoresAStepChanges) {
  const auto text = [](Kind kind, const std::vector<float>& matrix) {
    std::string result;
    for (const KeyRange& range : ChangedKeys(*ConstantStepOf(kind, matrix), 8, 8)) {
      result += fmt::format("{}-{} ", range.first, range.last);
    }
    return result;
  };
  const std::string upper = "1-8 2-8 3-8 4-8 5-8 6-8 7-8 8-0 ";
  EXPECT_EQ(text(Kind::kReplace, MatrixOf(kKept, -kBeyond)), upper);
  EXPECT_EQ(text(Kind::kAdd, MatrixOf(0, -1)), upper);
  EXPECT_EQ(text(Kind::kMul, MatrixOf(1, 0)), upper);
  EXPECT_EQ(text(Kind::kSub, MatrixOf(1, 0)), "0-1 0-2 0-3 0-4 0-5 0-6 0-7 0-8 ");
  const KeyRange ranges[] = {{2, 8}, {8, 0}, {1, 3}};
  EXPECT_EQ(UnionOf(ranges).first, 1);
  EXPECT_EQ(UnionOf(ranges).last, 8);
}

TEST(VisibleKeys, HoldWhereMaskedScoresAreFarBelow) {
  const auto infinite = MatrixOf(kKept, -kBeyond), large = MatrixOf(kKept, -1e4f);
  const VisibleKeys replaced = VisibleOf({ConstantStepOf(Kind::kReplace, infinite)});
  EXPECT_TRUE(replaced.Holds(1e38f));
  EXPECT_FALSE(replaced.Holds(kBeyond));
  EXPECT_FALSE(replaced.Holds(std::nanf("")));
  const VisibleKeys finite = VisibleOf({ConstantStepOf(Kind::kReplace, large)});
  EXPECT_TRUE(finite.Holds(9000));
  EXPECT_FALSE(finite.Holds(9950));
  const auto added = MatrixOf(0, -1e4f);
  EXPECT_TRUE(VisibleOf({ConstantStepOf(Kind::kAdd, added)}).Holds(4900));
  EXPECT_FALSE(VisibleOf({ConstantStepOf(Kind::kAdd, added)}).Holds(5000));
}

TEST(LargestMagnitude, IsThatOfAnyElement) {
  for (const std::string& isa : UsableInstructionSets()) {
    for (const int64_t columns : {1, 7, 16, 45}) {
      for (const bool transposed : {false, true}) {
        Waves waves(5 * 48, 3);
        const int64_t row = transposed ? 1 : 48, column = transposed ? 5 : 1;
        waves.data()[4 * row + (columns - 1) * column] = -9;
        const StridedMatrix<const float> m{waves.data(), row, column};
        EXPECT_EQ(std::bit_cast<float>(LargestMagnitude(isa, m, 5, columns)), 9) << isa;
        EXPECT_LT(std::bit_cast<float>(LargestMagnitude(isa, m, 4, columns)), 9) << isa;
        std::vector<uint16_t> halves;
        for (int64_t i = 0; i < 5 * 48; ++i) halves.push_back(FloatToBFloat16(waves.data()[i]));
        const StridedMatrix<const uint16_t> h{halves.data(), row, column};
        EXPECT_EQ(std::bit_cast<float>(LargestMagnitude(isa, h, 5, columns)), 9) << isa;
        waves.data()[0] = std::nanf("");
        const float none = std::bit_cast<float>(LargestMagnitude(isa, m, 5, columns));
        EXPECT_FALSE(std::isfinite(none)) << isa;
      }
    }
  }
}

}  // namespace
}  // namespace ag::cpu
