#include "server/pipeline/other_sizes.h"

#include <gtest/gtest.h>

#include "graph/text_form.h"

namespace ag {
namespace {

ImportedModel OpenModel(std::string_view text,
                        std::vector<std::pair<std::string, std::string>> dims) {
  ImportedModel model;
  model.graph = *ParseGraph(text, nullptr);
  model.origin.dim_names = std::move(dims);
  return model;
}

std::vector<std::string> AllSets(const ImportedModel& model, SizeChoice choice) {
  std::vector<std::string> texts;
  for (int set = 0; set < kOtherSets; ++set)
    texts.push_back(ShapesText(OtherShapes(model, choice, set)));
  return texts;
}

using Texts = std::vector<std::string>;

TEST(OtherSizes, ABatchTakesPrimes) {
  const ImportedModel model =
      OpenModel("input x f32[1,3,32,32]\noutput y = relu(x)", {{"x:0", "batch"}});
  EXPECT_EQ(AllSets(model, {}),
            Texts({"x=3x3x32x32", "x=5x3x32x32", "x=7x3x32x32", "x=2x3x32x32"}));
}

TEST(OtherSizes, ALengthStaysBelowTheBoundOne) {
  const ImportedModel model =
      OpenModel("input x f32[1,128]\ninput m f32[1,128]\noutput y = add(x, m)",
                {{"x:0", "b"}, {"x:1", "s"}, {"m:0", "b"}, {"m:1", "s"}});
  EXPECT_EQ(AllSets(model, {}),
            Texts({"m=3x123 x=3x123", "m=5x121 x=5x121", "m=7x115 x=7x115", "m=2x67 x=2x67"}));
}

TEST(OtherSizes, MultiplesOfAPowerOfTwoDifferBetweenTheSides) {
  const ImportedModel model =
      OpenModel("input x f32[1,3,224,224]\noutput y = relu(x)", {{"x:2", "h"}, {"x:3", "w"}});
  EXPECT_EQ(AllSets(model, {.multiples = true}),
            Texts({"x=1x3x192x256", "x=1x3x256x160", "x=1x3x160x288", "x=1x3x288x128"}));
}

TEST(OtherSizes, TiedSizesStayAlike) {
  const ImportedModel model =
      OpenModel("input x f32[1,64]\ninput m f32[1,64]\noutput y = add(x, m)",
                {{"x:0", ""}, {"x:1", "?"}, {"m:0", ""}, {"m:1", "?"}});
  EXPECT_EQ(AllSets(model, {})[0], "m=7x55 x=3x59");
  EXPECT_EQ(AllSets(model, {.tied = true})[0], "m=3x59 x=3x59");
}

TEST(OtherSizes, ASumFollowsItsParts) {
  const ImportedModel model =
      OpenModel("input x f32[1,16]\ninput m f32[17]\noutput y = relu(x)\noutput z = relu(m)",
                {{"x:0", "new"}, {"x:1", "past"}, {"m:0", "past + new"}});
  EXPECT_EQ(AllSets(model, {})[0], "m=14 x=3x11");
}

}  // namespace
}  // namespace ag
