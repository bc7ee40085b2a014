#include "server/pipeline/check_inputs.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "graph/text_form.h"

namespace ag {
namespace {

class CheckInputsTest : public ::testing::Test {
 protected:
  void Give(const std::string& name, const InputSet& set) { GiveBytes(name, EncodeInputSet(set)); }

  void GiveBytes(const std::string& name, const std::string& bytes) {
    v1::InputSet* added = asked_.add_inputs();
    added->set_name(name);
    added->set_digest(blobs_->Put(bytes)->Hex());
  }

  static Tensor Floats(Shape shape) { return Tensor::Zeros({DType::kFloat32, std::move(shape)}); }

  static SizedInputs Sized(int64_t size) {
    return {fmt::format("x=1x{}", size), {{.name = "x", .type = {DType::kFloat32, {1, size}}}}};
  }

  StatusOr<std::vector<GivenInputs>> Place() {
    return PlaceInputs(asked_, Sized(4), {Sized(8), Sized(16)}, model_, *blobs_);
  }

  const TempDir folder_ = *TempDir::Make("check-inputs-test");
  const std::shared_ptr<BlobDir> blobs_ = *BlobDir::Open(folder_.path());
  const Graph graph_ = *ParseGraph("input x f32[1,4]\noutput y = relu(x)\n");
  ImportedModel model_;
  v1::OptimizeRequest asked_;
};

TEST_F(CheckInputsTest, EachSetBelongsToItsSizes) {
  Give("a", {{"x", Floats({1, 4})}});
  Give("b", {{"x", Floats({1, 16})}});
  const auto placed = Place();
  ASSERT_EQ(ToString(placed.status()), "OK");
  EXPECT_EQ(placed->at(0).shape_set, std::nullopt);
  EXPECT_EQ(placed->at(1).shape_set, 1u);
  EXPECT_EQ(*ShapesOfInputs(asked_, *blobs_), (std::map<std::string, Shape>{{"x", {1, 4}}}));
  v1::Check check;
  AddInputs(graph_, *placed, 1, 7, &check);
  EXPECT_EQ(check.inputs(0).name(), "b");
  EXPECT_EQ(check.inputs(1).kind(), "usual");
  EXPECT_EQ(*InputsToTime(graph_, *placed, 1, 7, *blobs_), asked_.inputs(1).digest());
}

TEST_F(CheckInputsTest, SaysWhatDoesNotFit) {
  const struct {
    const char* name;
    InputSet set;
    std::string message;
  } kCases[] = {
      {"missing", {}, "inputs mine: input x is missing; the model's inputs are x"},
      {"unknown",
       {{"x", Floats({1, 4})}, {"xx", Floats({1})}},
       "inputs mine: the model has no input xx; did you mean 'x'?; its inputs are x"},
      {"other sizes",
       {{"x", Floats({1, 5})}},
       "inputs mine: input x: the model takes f32[1,4], given is f32[1,5]"},
  };
  for (const auto& c : kCases) {
    asked_.clear_inputs();
    Give("mine", c.set);
    const auto placed = Place();
    EXPECT_EQ(placed.status().code(), StatusCode::kInvalidArgument) << c.name;
    EXPECT_EQ(Message(placed.status()), c.message) << c.name;
  }
  model_.origin.dim_names = {{"x:1", "n"}};
  asked_.clear_inputs();
  Give("mine", {{"x", Floats({1, 5})}});
  EXPECT_EQ(Message(Place().status()),
            "inputs mine: input x: the model takes f32[1,4], given is f32[1,5]; the job runs at "
            "x=1x4, further sizes are given with --shape-set");
  asked_.clear_inputs();
  GiveBytes("mine", "no set");
  EXPECT_EQ(Message(Place().status()), "inputs mine: not a set of inputs: it begins otherwise");
}

TEST_F(CheckInputsTest, EdgeValuesAreOptional) {
  v1::Check check;
  AddInputs(graph_, {}, std::nullopt, 5, &check);
  ASSERT_EQ(check.inputs_size(), kInputKinds);
  for (int i = 0; i < check.inputs_size(); ++i) {
    const v1::CheckInputs& inputs = check.inputs(i);
    EXPECT_EQ(inputs.optional(), i >= 3) << inputs.kind();
    EXPECT_EQ(inputs.seed(), 5u + static_cast<uint64_t>(i));
    EXPECT_TRUE(inputs.reference_kernels());
  }
  EXPECT_EQ(check.seeds_size(), 3) << "for older workers";
}

TEST_F(CheckInputsTest, WhatFilesAreTimedOnIsStored) {
  const std::string hex = *InputsToTime(graph_, {}, std::nullopt, 1, *blobs_);
  const auto set = ReadInputSet(blobs_->PathOf(*ParseDigest(hex)));
  ASSERT_EQ(ToString(set.status()), "OK");
  EXPECT_EQ(set->at("x").bytes(), UsualInputs(graph_, 1)[0].bytes());
  const Graph large = *ParseGraph("input x f32[100000000]\noutput y = relu(x)\n");
  EXPECT_EQ(*InputsToTime(large, {}, std::nullopt, 1, *blobs_), "");
}

TEST_F(CheckInputsTest, OnnxRuntimeComparesOnTheSame) {
  Give("mine", {{"x", Floats({1, 4})}});
  const auto elsewhere = InputsElsewhere(graph_, *Place(), 1, *blobs_);
  ASSERT_EQ(ToString(elsewhere.status()), "OK");
  EXPECT_EQ(elsewhere->names, (std::vector<std::string>{"mine", "usual", "full", "short"}));
  EXPECT_EQ(elsewhere->digests[0], asked_.inputs(0).digest());
}

}  // namespace
}  // namespace ag
