#include "graph/onnx/plan_metadata.h"

#include <gtest/gtest.h>

#include "graph/onnx/import/import.h"
#include "graph/onnx/model_facts.h"
#include "graph/onnx/testing/onnx_testing.h"

namespace ag {
namespace {

std::string Added(const std::string& model, const std::string& key, const std::string& plan) {
  std::string out;
  const Status status =
      AppendPlans(model, std::vector<KeyedPlan>{{std::string(key), std::string(plan)}},
                  [&](std::string_view piece) {
                    out += piece;
                    return OkStatus();
                  });
  EXPECT_EQ(ToString(status), "OK");
  return out;
}

std::vector<std::pair<std::string, std::string>> PlansOf(const std::string& model) {
  const auto imported = ImportOnnx(model, {}, *testing::NewBlobs());
  EXPECT_TRUE(imported.ok()) << ToString(imported.status());
  return imported->plans;
}

using Plans = std::vector<std::pair<std::string, std::string>>;

TEST(AppendPlanTest, TheModelsBytesStayAsTheyAre) {
  const std::string model = testing::ConvModel();
  const std::string once = Added(model, "here", std::string("\0\1plan", 6));
  EXPECT_TRUE(once.starts_with(model));
  EXPECT_EQ(PlansOf(once), (Plans{{"here", std::string("\0\1plan", 6)}}));
  EXPECT_EQ(once, model + PlanEntry("here", std::string("\0\1plan", 6)));
  const auto before = ImportOnnx(model, {}, *testing::NewBlobs());
  const auto after = ImportOnnx(once, {}, *testing::NewBlobs());
  EXPECT_EQ(after->graph.digest(), before->graph.digest());
}

TEST(AppendPlanTest, AKeyStandsOnceAndOtherKeysStay) {
  const std::string model = testing::ConvModel();
  const std::string both = Added(Added(model, "here", "old"), "there", "other");
  const std::string again = Added(both, "here", "new");
  EXPECT_EQ(PlansOf(again), (Plans{{"there", "other"}, {"here", "new"}}));
  EXPECT_TRUE(again.starts_with(model));
  // Only the same key is replaced, not one with the same beginning.
  EXPECT_EQ(PlansOf(Added(Added(model, "here2", "x"), "here", "y")),
            (Plans{{"here2", "x"}, {"here", "y"}}));
  EXPECT_EQ(Added(Added(model, "here", "old"), "here", ""), model) << "nothing but removed";
}

TEST(AppendPlanTest, WhatIsNoModelIsRefused) {
  const auto refused = [](std::string_view bytes) {
    return AppendPlans(bytes, std::vector<KeyedPlan>{{"k", "p"}},
                       [](std::string_view) { return OkStatus(); })
        .code();
  };
  const std::string model = testing::ConvModel();
  EXPECT_EQ(refused(std::string_view(model).substr(0, model.size() - 1)),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(refused("\xff\xff\xff"), StatusCode::kInvalidArgument);
  const Status failed = AppendPlans(
      model, std::vector<KeyedPlan>{{"k", "p"}},
      [](std::string_view) { return Err(StatusCode::kResourceExhausted, "the disk is full"); });
  EXPECT_EQ(Message(failed), "the disk is full");
}

TEST(CountModelTest, CountsAsOnnxDoes) {
  const std::string model = testing::ModelFromText(
      "g (float[2,4] x) => (float[2,3] y) <float[4,3] w = {1,2,3,4,5,6,7,8,9,1,2,3},"
      " float[3] b = {1,2,3}> { p = MatMul(x, w) q = Add(p, b) r = Relu(q) y = Relu(r) }");
  const auto facts = CountModel(model);
  ASSERT_TRUE(facts.ok()) << ToString(facts.status());
  EXPECT_EQ(facts->file_bytes, static_cast<int64_t>(model.size()));
  EXPECT_EQ(facts->parameters, 15);
  EXPECT_EQ(facts->operators, (std::map<std::string, int>{{"Add", 1}, {"MatMul", 1}, {"Relu", 2}}));
  EXPECT_EQ(CountModel("\xff").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(CountModel("")->parameters, 0);
}

TEST(Sizes, ComeBackAndLeaveOutWhatIsWrong) {
  const std::map<std::string, Shape> shapes = {{"a=b", {1, 3, 224}}, {"mask", {8}}};
  EXPECT_EQ(SizesText(shapes), "a=b=1x3x224\nmask=8");
  EXPECT_EQ(SizesFromText(SizesText(shapes)), shapes);
  EXPECT_EQ(SizesFromText("x\ny=\nz=1x\nu=1x-2\nv=99999999999999999999\nw=4x5"),
            (std::map<std::string, Shape>{{"w", {4, 5}}}));
}

}  // namespace
}  // namespace ag
