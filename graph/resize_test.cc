#include "graph/resize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "base/text.h"
#include "graph/text_form.h"

namespace ag {
namespace {

std::string FractionText(float scale) {
  const StatusOr<ResizeScale> found = ScaleOf(scale);
  return found.ok() ? fmt::format("{}/{}", found->over, found->under) : ToString(found.status());
}

TEST(ResizeScaleTest, IsTheFractionThatPeopleMean) {
  const std::pair<float, const char*> cases[] = {
      {1, "1/1"},        {2, "2/1"},          {0.5f, "1/2"},
      {0.6f, "3/5"},     {4.0f / 3, "4/3"},   {1.3f, "13/10"},
      {1e-3f, "1/1000"}, {2.34375f, "75/32"}, {16777216, "16777216/1"},
  };
  for (const auto& [scale, expected] : cases) EXPECT_EQ(FractionText(scale), expected) << scale;
  for (const float scale : {0.0f, -2.0f, 1e-9f, 1e9f, std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_EQ(FractionText(scale),
              fmt::format("UNIMPLEMENTED: scale {} is no fraction of numbers up to 2^24", scale));
  }
}

TEST(ResizeScaleTest, OfTwoSizesIsTheirFraction) {
  for (int64_t in = 1; in <= 200; ++in) {
    for (int64_t out = 1; out <= 200; ++out) {
      const int64_t divisor = std::gcd(in, out);
      const StatusOr<ResizeScale> scale = ScaleOf(QuotientOf({out, in}));
      ASSERT_TRUE(scale.ok());
      ASSERT_EQ(*scale, (ResizeScale{out / divisor, in / divisor})) << in << " to " << out;
    }
  }
}

// Returns the resize node for an operand and attributes, such as "x f32[5]" and "sizes=[3]".
StatusOr<Node> ResizeNode(const std::string& operand, const std::string& attributes) {
  AG_LET(const Graph graph,
         ParseGraph("input x " + operand + "\noutput y = resize(x) " + attributes));
  return graph.node(graph.outputs()[0].edge.node);
}

struct FormCase {
  const char* name;
  const char* operand;
  const char* given;
  const char* kept;
};

TEST(ResizeTest, EqualResizesHaveOneForm) {
  const FormCase cases[] = {
      {"scales of the sizes", "f32[3,5]", "sizes=[3,3] scales=[1,1,3,5]", "sizes=[3,3]"},
      {"no other sizes", "f32[2,3]", "sizes=[2,3] scales=[1,1,6,5]", "sizes=[2,3]"},
      {"reduced scales", "f32[3]", "sizes=[4] scales=[15,10]", "sizes=[4] scales=[3,2]"},
      {"by corners", "f32[3]",
       "sizes=[4] scales=[3,2] coordinate_transformation_mode=align_corners",
       "sizes=[4] coordinate_transformation_mode=align_corners"},
      {"what nearest does not ask for", "f32[3]", "sizes=[4] cubic_coeff_a=-0.5 exclude_outside=1",
       "sizes=[4]"},
      {"what linear does not ask for", "f32[3]",
       "sizes=[4] mode=linear nearest_mode=floor exclude_outside=1", "sizes=[4] mode=linear"},
      {"what cubic does not ask for", "f32[3]",
       "sizes=[4] mode=cubic nearest_mode=floor exclude_outside=7",
       "sizes=[4] mode=cubic exclude_outside=1"},
      {"half pixels", "f32[1,3]", "sizes=[1,4] coordinate_transformation_mode=pytorch_half_pixel",
       "sizes=[1,4]"},
  };
  for (const FormCase& c : cases) {
    const StatusOr<Node> given = ResizeNode(c.operand, c.given);
    const StatusOr<Node> kept = ResizeNode(c.operand, c.kept);
    ASSERT_TRUE(given.ok() && kept.ok()) << c.name << ToString(given.status());
    EXPECT_TRUE(*given->attributes == *kept->attributes) << c.name;
  }
  const StatusOr<Node> one =
      ResizeNode("f32[1,3]", "sizes=[1,1] coordinate_transformation_mode=pytorch_half_pixel");
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->attributes->String("coordinate_transformation_mode"), "pytorch_half_pixel");
}

struct NearestCase {
  int64_t in;
  const char* attributes;
  const char* elements;  // With round_prefer_floor, round_prefer_ceil, floor, ceil.
};

constexpr NearestCase kNearest[] = {
    {4, "sizes=[2]", "0,2 1,3 0,2 1,3"},
    {2, "sizes=[5]", "0,0,0,1,1 0,0,1,1,1 0,0,0,0,1 0,1,1,1,1"},
    {4, "sizes=[2] coordinate_transformation_mode=asymmetric", "0,2 0,2 0,2 0,2"},
    // 3 / 0.6f is 5 in f32, although 0.6f is above 0.6.
    {10, "sizes=[6] coordinate_transformation_mode=asymmetric",
     "0,2,3,5,7,8 0,2,3,5,7,8 0,1,3,5,6,8 0,2,4,5,7,9"},
    {4, "sizes=[3] coordinate_transformation_mode=align_corners", "0,1,3 0,2,3 0,1,3 0,2,3"},
    {4, "sizes=[1] coordinate_transformation_mode=align_corners", "0 0 0 0"},
    {4, "sizes=[1] coordinate_transformation_mode=pytorch_half_pixel", "0 0 0 0"},
    {4, "sizes=[1]", "1 2 1 2"},
    {4, "sizes=[2] coordinate_transformation_mode=tf_half_pixel_for_nn", "1,3 1,3 1,3 1,3"},
    // Exactly 14.5, except for the rounding of 6 / 20.
    {20, "sizes=[6]", "1,4,8,11,14,18 1,5,8,11,15,18 1,4,7,11,14,17 2,5,8,12,15,18"},
    // One and a half elements make one: its place is their middle, or a quarter before it.
    {3, "sizes=[1] scales=[1,2] coordinate_transformation_mode=half_pixel_symmetric", "1 1 1 1"},
    {3, "sizes=[1] scales=[1,2]", "0 1 0 1"},
};

TEST(ResizeTest, FindsTheNearest) {
  for (const NearestCase& c : kNearest) {
    std::vector<std::string> found;
    for (const std::string_view rounding : kResizeRoundings) {
      const StatusOr<Node> node = ResizeNode(
          fmt::format("f32[{}]", c.in), fmt::format("{} nearest_mode={}", c.attributes, rounding));
      ASSERT_TRUE(node.ok()) << ToString(node.status());
      found.push_back(Join(TapsOf(ResizeOf(*node->attributes, {c.in}), 0).elements, ","));
    }
    EXPECT_EQ(Join(found, " "), c.elements) << c.in << " " << c.attributes;
  }
}

TEST(ResizeTest, WeightsAddUpToOneInside) {
  for (const std::string_view mode : {"linear", "cubic", "cubic exclude_outside=1"}) {
    for (const std::string_view places : kResizePlaces) {
      for (int64_t out = 1; out <= 12; ++out) {
        const StatusOr<Node> node = ResizeNode(
            "f32[5]",
            fmt::format("sizes=[{}] mode={} coordinate_transformation_mode={}", out, mode, places));
        ASSERT_TRUE(node.ok()) << ToString(node.status());
        const ResizeTaps taps = TapsOf(ResizeOf(*node->attributes, {5}), 0);
        for (int64_t i = 0; i < out; ++i) {
          double sum = 0;
          for (int64_t t = i * taps.count; t < (i + 1) * taps.count; ++t) {
            sum += taps.weights[t];
            EXPECT_TRUE(taps.elements[t] >= 0 && taps.elements[t] < 5);
          }
          EXPECT_NEAR(sum, 1, 1e-12) << mode << " " << places << " " << out << " " << i;
        }
      }
    }
  }
}

TEST(ResizeTest, CountsWhatAResultIsMadeOf) {
  const StatusOr<Node> node = ResizeNode("f32[2,3,5,5]", "sizes=[2,3,5,10] mode=cubic");
  ASSERT_TRUE(node.ok());
  const Resize resize = ResizeOf(*node->attributes, {2, 3, 5, 5});
  EXPECT_EQ(resize.all_taps(), 4);
  EXPECT_TRUE(resize.Keeps(3));
  EXPECT_FALSE(resize.Keeps(4));
}

}  // namespace
}  // namespace ag
