#include "plan/spec/layout.h"

#include <gtest/gtest.h>

namespace ag {
namespace {

TensorType F32(Shape shape) { return {DType::kFloat32, std::move(shape)}; }

TEST(Layout, NamesParseBack) {
  for (size_t i = 0; i < kLayoutCount; ++i) {
    const Layout layout = static_cast<Layout>(i);
    EXPECT_EQ(*ParseLayout(LayoutName(layout)), layout);
  }
  EXPECT_EQ(Message(ParseLayout("nchw").status()),
            "layout: expected plain, blocked8, blocked16, channels_last or channels_last8, got "
            "'nchw'");
}

TEST(Layout, BytesIncludePadding) {
  EXPECT_EQ(LayoutBytes(F32({2, 20, 3, 5}), Layout::kPlain), 2 * 20 * 15 * 4);
  EXPECT_EQ(LayoutBytes(F32({2, 20, 3, 5}), Layout::kBlocked8), 2 * 24 * 15 * 4);
  EXPECT_EQ(LayoutBytes(F32({2, 20, 3, 5}), Layout::kBlocked16), 2 * 32 * 15 * 4);
  EXPECT_EQ(LayoutBytes(F32({2, 20, 3, 5}), Layout::kChannelsLast), 2 * 20 * 15 * 4);
  EXPECT_EQ(LayoutBytes(F32({2, 20, 3, 5}), Layout::kChannelsLast8), 2 * 24 * 15 * 4);
  EXPECT_EQ(LayoutBytes(F32({2, 24, 3, 5}), Layout::kChannelsLast8), 2 * 24 * 15 * 4);
  EXPECT_EQ(LayoutBytes({DType::kFloat16, {1, 3, 2, 2}}, Layout::kChannelsLast8), 8 * 4 * 2);
}

TEST(Layout, DenseStridesGoByAxis) {
  EXPECT_EQ(DenseStrides({2, 3, 5, 7}, Layout::kPlain), (std::vector<int64_t>{105, 35, 7, 1}));
  EXPECT_EQ(DenseStrides({2, 3, 5, 7}, Layout::kChannelsLast),
            (std::vector<int64_t>{105, 1, 21, 3}));
  EXPECT_EQ(DenseStrides({2, 3, 5, 7}, Layout::kChannelsLast8),
            (std::vector<int64_t>{280, 1, 56, 8}));
  EXPECT_EQ(DenseStrides({}, Layout::kPlain), std::vector<int64_t>{});
}

TEST(Layout, OnlyFloatsOfRankFourLeavePlain) {
  EXPECT_TRUE(CanHave(F32({1, 16, 1, 1}), Layout::kBlocked16));
  EXPECT_FALSE(CanHave(F32({1, 16, 1}), Layout::kBlocked16));
  EXPECT_FALSE(CanHave({DType::kInt64, {1, 16, 1, 1}}, Layout::kChannelsLast));
  EXPECT_TRUE(CanHave({DType::kInt64, {3}}, Layout::kPlain));
}

TEST(Layout, ViewsAlongAnAxis) {
  struct Case {
    const char* name;
    Shape shape;
    Layout layout;
    int64_t axis, begin, size;
    int64_t offset;  // -1: not a view.
  };
  const Case cases[] = {
      {"plain channels, batch 1", {1, 8, 2, 3}, Layout::kPlain, 1, 3, 2, 3 * 6 * 4},
      {"plain channels, batch 2", {2, 8, 2, 3}, Layout::kPlain, 1, 3, 2, -1},
      {"the whole axis, batch 2", {2, 8, 2, 3}, Layout::kPlain, 1, 0, 8, 0},
      {"plain batch", {4, 8, 2, 3}, Layout::kPlain, 0, 1, 2, 8 * 6 * 4},
      {"plain rows", {1, 1, 2, 3}, Layout::kPlain, 2, 1, 1, 3 * 4},
      {"blocked channels", {1, 48, 2, 3}, Layout::kBlocked16, 1, 16, 32, 16 * 6 * 4},
      {"blocked, batch 2", {2, 48, 2, 3}, Layout::kBlocked16, 1, 16, 32, -1},
      {"broken begin", {1, 48, 2, 3}, Layout::kBlocked16, 1, 8, 16, -1},
      {"broken size", {1, 48, 2, 3}, Layout::kBlocked16, 1, 16, 8, -1},
      {"blocked 8", {1, 48, 2, 3}, Layout::kBlocked8, 1, 8, 16, 8 * 6 * 4},
      {"blocked batch is padded", {2, 20, 2, 3}, Layout::kBlocked16, 0, 1, 1, 32 * 6 * 4},
      {"blocked rows of one block", {1, 16, 4, 3}, Layout::kBlocked16, 2, 1, 2, 3 * 16 * 4},
      {"blocked rows of two blocks", {1, 32, 4, 3}, Layout::kBlocked16, 2, 1, 2, -1},
      {"channels last, many pixels", {1, 8, 2, 3}, Layout::kChannelsLast, 1, 3, 2, -1},
      {"channels last, one pixel", {1, 8, 1, 1}, Layout::kChannelsLast, 1, 3, 2, 12},
      {"channels last rows", {1, 8, 2, 3}, Layout::kChannelsLast, 2, 1, 1, 3 * 8 * 4},
      {"padded, broken size", {1, 20, 1, 1}, Layout::kChannelsLast8, 1, 8, 12, -1},
      {"padded, broken begin", {1, 20, 1, 1}, Layout::kChannelsLast8, 1, 4, 8, -1},
      {"padded, a whole block", {1, 20, 1, 1}, Layout::kChannelsLast8, 1, 8, 8, 32},
      {"padded, many pixels", {1, 20, 2, 3}, Layout::kChannelsLast8, 1, 8, 8, -1},
      {"padded, all channels", {2, 20, 2, 3}, Layout::kChannelsLast8, 1, 0, 20, 0},
      {"padded rows", {1, 20, 4, 3}, Layout::kChannelsLast8, 2, 1, 2, 3 * 24 * 4},
      {"padded columns of a row", {1, 20, 1, 3}, Layout::kChannelsLast8, 3, 2, 1, 2 * 24 * 4},
      {"padded batch", {3, 20, 2, 3}, Layout::kChannelsLast8, 0, 2, 1, 2 * 24 * 6 * 4},
      {"rank 2", {6, 4}, Layout::kPlain, 0, 2, 3, 2 * 4 * 4},
  };
  for (const Case& c : cases) {
    int64_t offset = 0;
    const bool is_view = IsViewAlongAxis(F32(c.shape), c.layout, c.axis, c.begin, c.size, &offset);
    EXPECT_EQ(is_view ? offset : -1, c.offset) << c.name;
  }
}

TEST(Layout, OnePixelOfWholeBlocksIsTheSameEverywhere) {
  EXPECT_TRUE(HasSameBytes(F32({1, 32, 1, 1}), Layout::kBlocked16, Layout::kPlain));
  EXPECT_TRUE(HasSameBytes(F32({3, 20, 1, 1}), Layout::kChannelsLast, Layout::kPlain));
  EXPECT_FALSE(HasSameBytes(F32({1, 20, 1, 1}), Layout::kBlocked16, Layout::kPlain));
  EXPECT_FALSE(HasSameBytes(F32({1, 32, 2, 1}), Layout::kBlocked16, Layout::kPlain));
}

TEST(Layout, WholeBlocksWithChannelsLastNeedNoPadding) {
  EXPECT_TRUE(HasSameBytes(F32({2, 24, 3, 3}), Layout::kChannelsLast8, Layout::kChannelsLast));
  EXPECT_FALSE(HasSameBytes(F32({2, 20, 3, 3}), Layout::kChannelsLast8, Layout::kChannelsLast));
  EXPECT_FALSE(HasSameBytes(F32({2, 20, 1, 1}), Layout::kChannelsLast8, Layout::kPlain));
  EXPECT_TRUE(HasSameBytes(F32({2, 24, 1, 1}), Layout::kChannelsLast8, Layout::kPlain));
}

}  // namespace
}  // namespace ag
