#include "device/cpu/blocked_copy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace ag::cpu {
namespace {

using Tag = dnnl::memory::format_tag;
constexpr auto kFloats = dnnl::memory::data_type::f32;

// What oneDNN's own reorder gives, padding included.
std::vector<float> Reordered(const Desc& wanted, const Desc& given, std::vector<float>& values) {
  std::vector<float> result(wanted.get_size() / sizeof(float), -1);
  dnnl::memory from(given, Engine(), values.data()), to(wanted, Engine(), result.data());
  dnnl::stream stream(Engine());
  dnnl::reorder(from, to).execute(stream, from, to);
  stream.wait();
  return result;
}

std::vector<float> Counted(const Dims& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
  return values;
}

TEST(BlockedCopy, IsWhatOneDnnWrites) {
  struct Case {
    Dims dims, strides;
    Tag wanted;
  };
  const Case kCases[] = {// The weights of products: k by n, seen as n by k.
                         {{130, 70, 1, 1}, {1, 130, 130, 130}, Tag::Acdb64a},
                         {{128, 64, 1, 1}, {1, 128, 128, 128}, Tag::Acdb48a},
                         {{130, 70, 1, 1}, {1, 130, 130, 130}, Tag::ABcd16b16a},
                         {{70, 130}, {130, 1}, Tag::BA16a64b},
                         {{70, 130}, {130, 1}, Tag::BA16a16b},
                         {{70, 130}, {1, 70}, Tag::AB16b64a},
                         {{70, 130}, {1, 70}, Tag::ab},
                         {{70, 130}, {130, 1}, Tag::ba},
                         // Those of convolutions, also of groups and of three axes.
                         {{64, 48, 3, 3}, {48 * 9, 9, 3, 1}, Tag::ABcd16b16a},
                         {{33, 17, 3, 5}, {17 * 15, 15, 5, 1}, Tag::ABcd16b16a},
                         {{64, 3, 7, 7}, {147, 49, 7, 1}, Tag::Acdb16a},
                         {{24, 20, 3, 3}, {180, 9, 3, 1}, Tag::ABcd8b8a},
                         {{32, 1, 1, 3, 3}, {9, 9, 9, 3, 1}, Tag::Abcde16a},
                         {{40, 1, 1, 3, 3}, {9, 9, 9, 3, 1}, Tag::Abcde16a},
                         {{2, 32, 16, 3, 3}, {32 * 144, 144, 9, 3, 1}, Tag::aBCde16c16b},
                         {{20, 18, 2, 3, 4}, {18 * 24, 24, 12, 4, 1}, Tag::ABcde16b16a},
                         // An image, and a vector.
                         {{2, 19, 5, 6}, {19 * 30, 30, 6, 1}, Tag::aBcd16b},
                         {{2, 19, 5, 6}, {19 * 30, 30, 6, 1}, Tag::acdb},
                         {{100}, {1}, Tag::a}};
  for (const Case& c : kCases) {
    const Desc given(c.dims, kFloats, c.strides), wanted(c.dims, kFloats, c.wanted);
    std::vector<float> values = Counted(c.dims);
    std::vector<float> copied(wanted.get_size() / sizeof(float), -1);
    ASSERT_TRUE(CopyToBlocks(wanted, given, values.data(), copied.data()));
    EXPECT_EQ(copied, Reordered(wanted, given, values)) << static_cast<int>(c.wanted);
  }
}

TEST(BlockedCopy, BeginsWhereAPieceOfTheTensorDoes) {
  const Desc whole({48, 5, 3, 3}, kFloats, Tag::abcd), wanted({16, 5, 3, 3}, kFloats, Tag::Abcd16a);
  const Desc piece = whole.submemory_desc({16, 5, 3, 3}, {32, 0, 0, 0});
  std::vector<float> values = Counted({48, 5, 3, 3});
  std::vector<float> copied(wanted.get_size() / sizeof(float), -1);
  ASSERT_TRUE(CopyToBlocks(wanted, piece, values.data(), copied.data()));
  EXPECT_EQ(copied, Reordered(wanted, piece, values));
  EXPECT_EQ(copied[0], values[32 * 45]);
}

// Forms of bf16 have two neighbours of a sum side by side.
TEST(BlockedCopy, RoundsToBf16AsOneDnnDoes) {
  constexpr auto kBf16 = dnnl::memory::data_type::bf16;
  struct Case {
    Dims dims, strides;
    Tag wanted;
  };
  const Case kCases[] = {{{8, 5, 3, 3}, {45, 9, 3, 1}, Tag::ABcd8b16a2b},
                         {{33, 17, 3, 5}, {17 * 15, 15, 5, 1}, Tag::ABcd8b16a2b},
                         {{70, 131}, {131, 1}, Tag::BA16a64b2a},
                         {{131, 70}, {1, 131}, Tag::AB16b64a2b},
                         {{40, 1, 1, 3, 3}, {9, 9, 9, 3, 1}, Tag::Abcde16a},
                         {{20, 18}, {18, 1}, Tag::ab}};
  for (const Case& c : kCases) {
    const Desc given(c.dims, kFloats, c.strides), wanted(c.dims, kBf16, c.wanted);
    std::vector<float> values = Counted(c.dims);
    for (float& value : values) value = std::sin(value);
    std::vector<uint16_t> copied(wanted.get_size() / sizeof(uint16_t), 7), expected(copied);
    ASSERT_TRUE(CopyToBlocks(wanted, given, values.data(), copied.data()));
    dnnl::memory from(given, Engine(), values.data()), to(wanted, Engine(), expected.data());
    dnnl::stream stream(Engine());
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
    EXPECT_EQ(copied, expected) << static_cast<int>(c.wanted);
  }
}

TEST(BlockedCopy, LeavesWhatItDoesNotKnow) {
  float value = 0;
  const Desc plain({16, 16}, kFloats, Tag::ab), blocks({16, 16}, kFloats, Tag::AB16b16a);
  EXPECT_FALSE(CopyToBlocks(plain, blocks, &value, &value));
  const Desc bytes({16, 16}, dnnl::memory::data_type::s8, Tag::ab);
  EXPECT_FALSE(CopyToBlocks(bytes, plain, &value, &value));
  EXPECT_FALSE(CopyToBlocks(plain, Desc({16, 8}, kFloats, Tag::ab), &value, &value));
}

}  // namespace
}  // namespace ag::cpu
