#include "graph/inputs/make_inputs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace ag {
namespace {

std::vector<double> Values(const InputSpec& spec, InputKind kind, uint64_t seed = 1) {
  return MakeInputs({spec}, kind, seed).at(0).ToDoubles();
}

InputSpec Spec(const char* name, DType dtype, Shape shape) {
  return DescribeInput(name, {dtype, std::move(shape)});
}

// Returns how many ones each row begins with; -1: a one comes later.
std::vector<int> OnesOf(const std::vector<double>& mask, size_t columns) {
  std::vector<int> ones;
  for (size_t row = 0; row < mask.size(); row += columns) {
    const auto begin = mask.begin() + static_cast<ptrdiff_t>(row);
    const auto end = begin + static_cast<ptrdiff_t>(columns);
    const auto first = std::find(begin, end, 0.0);
    ones.push_back(std::find(first, end, 1.0) == end ? static_cast<int>(first - begin) : -1);
  }
  return ones;
}

TEST(MakeInputs, EqualSeedsGiveEqualData) {
  const std::vector<InputSpec> specs = {Spec("x", DType::kFloat32, {4, 4}),
                                        Spec("z", DType::kFloat32, {4, 4})};
  const auto a = MakeInputs(specs, InputKind::kUsual, 1),
             b = MakeInputs(specs, InputKind::kUsual, 1),
             c = MakeInputs(specs, InputKind::kUsual, 2);
  EXPECT_EQ(a[0].bytes(), b[0].bytes());
  EXPECT_NE(a[0].bytes(), a[1].bytes());
  EXPECT_NE(a[0].bytes(), c[0].bytes());
}

TEST(MakeInputs, MasksHaveOnesAndThenZerosAndNoEmptyRow) {
  const InputSpec mask = Spec("attention_mask", DType::kInt64, {50, 16});
  for (int kind = 0; kind < kInputKinds; ++kind) {
    const std::vector<int> ones = OnesOf(Values(mask, static_cast<InputKind>(kind)), 16);
    const auto [low, high] = std::ranges::minmax(ones);
    switch (static_cast<InputKind>(kind)) {
      case InputKind::kUsual:
        EXPECT_GE(low, 8);
        EXPECT_LT(low, 16) << "some end before the row does";
        break;
      case InputKind::kShort:
        EXPECT_GE(low, 1);
        EXPECT_LE(high, 4);
        break;
      default:
        EXPECT_EQ(low, 16);
    }
  }
}

TEST(MakeInputs, AMaskHasNoMoreOnesThanTheGraphCounts) {
  InputSpec mask = Spec("mask", DType::kBool, {20, 16});
  mask.ones_max = 5;
  for (int kind = 0; kind < kInputKinds; ++kind) {
    EXPECT_LE(std::ranges::max(OnesOf(Values(mask, static_cast<InputKind>(kind)), 16)), 5);
  }
}

TEST(MakeInputs, PaddingIsTheOpposite) {
  const InputSpec padding = Spec("key_padding_mask", DType::kBool, {1, 8});
  EXPECT_EQ(Values(padding, InputKind::kFull), std::vector<double>(8, 0));
  EXPECT_EQ(Values(padding, InputKind::kShort)[0], 0);
  EXPECT_EQ(Values(padding, InputKind::kShort)[7], 1);
}

TEST(MakeInputs, IntegersStayInTheirBounds) {
  InputSpec tokens = Spec("ids", DType::kInt64, {1, 500});
  tokens.role = InputRole::kTokens;
  tokens.low = 2;
  tokens.high = 9;
  for (int kind = 0; kind < kInputKinds; ++kind) {
    const auto [low, high] = std::ranges::minmax(Values(tokens, static_cast<InputKind>(kind)));
    EXPECT_GE(low, 2);
    EXPECT_LE(high, 9);
  }
  const auto [low, high] = std::ranges::minmax(Values(tokens, InputKind::kUsual));
  EXPECT_EQ(low, 2);
  EXPECT_EQ(high, 9);
  EXPECT_EQ(Values(tokens, InputKind::kZeros), std::vector<double>(500, 2));
  EXPECT_EQ(Values(tokens, InputKind::kConstant), std::vector<double>(500, 9));
}

TEST(MakeInputs, PositionsCountAndStayInTheTable) {
  InputSpec positions = Spec("position_ids", DType::kInt64, {2, 4});
  EXPECT_EQ(Values(positions, InputKind::kUsual), (std::vector<double>{0, 1, 2, 3, 0, 1, 2, 3}));
  positions.high = 2;
  EXPECT_EQ(Values(positions, InputKind::kLarge), (std::vector<double>{0, 1, 2, 2, 0, 1, 2, 2}));
}

TEST(MakeInputs, LengthsAreWithinTheSequence) {
  InputSpec lengths = Spec("lengths", DType::kInt64, {100});
  lengths.low = 1;
  lengths.high = 12;
  const auto [low, high] = std::ranges::minmax(Values(lengths, InputKind::kUsual));
  EXPECT_GE(low, 6);
  EXPECT_EQ(high, 12);
  EXPECT_EQ(Values(lengths, InputKind::kFull), std::vector<double>(100, 12));
  EXPECT_LE(std::ranges::max(Values(lengths, InputKind::kShort)), 3);
}

TEST(MakeInputs, FloatsHaveEdgeValues) {
  const InputSpec x = Spec("x", DType::kFloat32, {1000});
  const auto range = [&](InputKind kind) { return std::ranges::minmax(Values(x, kind)); };
  EXPECT_LT(range(InputKind::kUsual).min, -1);
  EXPECT_GT(range(InputKind::kUsual).max, 1);
  EXPECT_EQ(Values(x, InputKind::kZeros), std::vector<double>(1000, 0));
  EXPECT_EQ(Values(x, InputKind::kConstant), std::vector<double>(1000, 0.5));
  EXPECT_LT(range(InputKind::kNegative).max, 0);
  EXPECT_GT(range(InputKind::kLarge).max, 100);
  EXPECT_LT(range(InputKind::kTiny).max, 1e-4);
  EXPECT_GT(range(InputKind::kTiny).max, 1e-6);
}

TEST(MakeInputs, PicturesAreNoiseOrFromZeroToOne) {
  const InputSpec picture = Spec("x", DType::kFloat32, {1, 3, 20, 20});
  EXPECT_LT(std::ranges::min(Values(picture, InputKind::kUsual)), -1);
  const auto [low, high] = std::ranges::minmax(Values(picture, InputKind::kFull));
  EXPECT_GE(low, 0);
  EXPECT_LE(high, 1);
  EXPECT_GT(high, 0.9);
}

TEST(MakeInputs, HalvesDoNotVanish) {
  const std::vector<double> tiny = Values(Spec("x", DType::kFloat16, {100}), InputKind::kTiny);
  EXPECT_EQ(std::ranges::count(tiny, 0.0), 0);
}

TEST(MakeInputs, KindsAreThoseThatDiffer) {
  using enum InputKind;
  InputSpec tokens = Spec("ids", DType::kInt64, {1, 5});
  tokens.role = InputRole::kTokens;
  const InputSpec x = Spec("x", DType::kFloat32, {2}), mask = Spec("mask", DType::kFloat32, {2});
  EXPECT_EQ(KindsFor({x}), (std::vector<InputKind>{kUsual, kFull, kShort, kZeros, kConstant,
                                                   kNegative, kLarge, kTiny}));
  EXPECT_EQ(KindsFor({tokens, mask}),
            (std::vector<InputKind>{kUsual, kFull, kShort, kZeros, kConstant}));
  EXPECT_EQ(KindsFor({mask}), (std::vector<InputKind>{kUsual, kFull, kShort}));
  for (int kind = 0; kind < kInputKinds; ++kind) {
    EXPECT_EQ(ParseInputKind(InputKindName(static_cast<InputKind>(kind))),
              static_cast<InputKind>(kind));
  }
  EXPECT_EQ(ParseInputKind("never"), std::nullopt);
}

TEST(MakeInputs, ANudgeIsAboutOneRounding) {
  const std::vector<Tensor> inputs = {Tensor::FromFloats({4}, std::vector<float>{1, -2, 0, 1000}),
                                      Tensor::FromInts({2}, std::vector<int64_t>{5, 6})};
  const std::vector<Tensor> nudged = Nudged(inputs, 1);
  EXPECT_EQ(nudged[1].bytes(), inputs[1].bytes());
  for (int64_t i = 0; i < 4; ++i) {
    const double away = std::abs(nudged[0].At(i) - inputs[0].At(i));
    EXPECT_GT(away, 0) << i;
    EXPECT_LE(away, 3e-7 * std::max(1.0, std::abs(inputs[0].At(i)))) << i;
  }
}

}  // namespace
}  // namespace ag
