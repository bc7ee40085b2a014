#include "device/cpu/half_loops.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "graph/half.h"

namespace ag::cpu {
namespace {

class HalfLoops : public testing::TestWithParam<DType> {
 protected:
  float Widened(uint16_t bits) const {
    return GetParam() == DType::kFloat16 ? HalfToFloat(bits) : BFloat16ToFloat(bits);
  }
  uint16_t Narrowed(float value) const {
    return GetParam() == DType::kFloat16 ? FloatToHalf(value) : FloatToBFloat16(value);
  }
};

TEST_P(HalfLoops, WidenEveryPattern) {
  std::vector<uint16_t> from(1 << 16);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<uint16_t>(i);
  std::vector<float> to(from.size());
  WidenHalf(GetParam(), from.data(), to.data(), std::ssize(from));
  for (size_t i = 0; i < from.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(to[i]), std::bit_cast<uint32_t>(Widened(from[i]))) << i;
  }
}

TEST(HalfLoopsOfBf16, StoreAsBf16KeepsFiniteNumbersFinite) {
  std::vector<float> from = {3.4e38F,   -3.4e38F, 3.38e38F, INFINITY, -INFINITY,
                             -3.38e38F, NAN,      1.0F,     -1e-40F,  0.0F};
  const auto add = [&](uint32_t bits) { from.push_back(std::bit_cast<float>(bits)); };
  for (uint32_t bits = 0x7f7f0000; bits < 0x7f810000; bits += 0x1fff) add(bits);
  for (const uint32_t bits : {0x7f7f7fffU, 0x7f7f8000U, 0x7f7fffffU, 0x7f800001U}) add(bits);
  Random random(1);
  for (int i = 0; i < 300'000; ++i) {
    add(static_cast<uint32_t>(random.Below(uint64_t{1} << 32)));
  }
  const float most = BFloat16ToFloat(0x7f7f);
  std::vector<uint16_t> to(from.size());
  StoreAsBf16(from.data(), to.data(), std::ssize(from));
  for (size_t i = 0; i < from.size(); ++i) {
    const float rounded = BFloat16ToFloat(FloatToBFloat16(from[i]));
    const bool grew = std::isfinite(from[i]) && std::isinf(rounded);
    const float expected = grew ? std::copysign(most, from[i]) : rounded;
    ASSERT_EQ(to[i], FloatToBFloat16(expected)) << from[i];
  }
  EXPECT_EQ(to[1], 0xff7f);
}

// Patterns of all exponents, and the neighbours of what lies half-way between two results.
TEST_P(HalfLoops, NarrowToTheNearest) {
  std::vector<float> from = {0.0F, -0.0F, INFINITY, -INFINITY, NAN, 65519.9F, 65520.0F, 1e-45F};
  Random random(1);
  for (int i = 0; i < 300'000; ++i) {
    from.push_back(std::bit_cast<float>(static_cast<uint32_t>(random.Below(uint64_t{1} << 32))));
  }
  for (uint32_t bits = 0; bits < 0x7c00U; ++bits) {
    const auto at = static_cast<uint16_t>(bits), next = static_cast<uint16_t>(bits + 1);
    const float middle = Widened(at) / 2 + Widened(next) / 2;
    for (const float value : {middle, std::nextafterf(middle, 0), std::nextafterf(middle, 1e30F)}) {
      from.push_back(value);
      from.push_back(-value);
    }
  }
  std::vector<uint16_t> to(from.size());
  NarrowToHalf(GetParam(), from.data(), to.data(), std::ssize(from));
  for (size_t i = 0; i < from.size(); ++i) ASSERT_EQ(to[i], Narrowed(from[i])) << from[i];
  std::vector<float> rounded = from;
  RoundToHalf(GetParam(), rounded.data(), rounded.data(), std::ssize(rounded));
  for (size_t i = 0; i < from.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(rounded[i]), std::bit_cast<uint32_t>(Widened(to[i])))
        << from[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Types, HalfLoops, testing::Values(DType::kFloat16, DType::kBFloat16),
                         [](const auto& info) {
                           return info.param == DType::kFloat16 ? "f16" : "bf16";
                         });

}  // namespace
}  // namespace ag::cpu
