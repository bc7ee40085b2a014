#include "worker/check_outputs.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "device/open_device.h"
#include "plan/equivalence.h"
#include "worker/testing/testing.h"

namespace ag {
namespace {

constexpr double kTolerance = 1e-3;

class CheckOutputsTest : public ::testing::Test {
 protected:
  // Compares the two graphs on these inputs; each comparison takes a second of the clock.
  StatusOr<CheckResult> Check(std::string_view reference, std::string_view candidate,
                              std::vector<CheckInputs> inputs, Nanos optional_max = Nanos::max()) {
    const auto device = *OpenDevice("cpu:1");
    const Candidate a = testing::Planned(reference, device->spec(), &weights_);
    const Candidate b = testing::Planned(candidate, device->spec(), &weights_);
    AG_LET(const auto first, device->Build({a.graph, a.plan, weights_}));
    AG_LET(const auto second, device->Build({b.graph, b.plan, weights_}));
    return CheckOutputs({.graph = a.graph,
                         .reference = *first,
                         .candidate_graph = b.graph,
                         .candidate = *second,
                         .weights = weights_,
                         .inputs = std::move(inputs),
                         .tolerance = kTolerance,
                         .optional_max = optional_max,
                         .on_progress = [this] { clock_.Advance(Nanos{1'000'000'000}); }},
                        clock_);
  }

  static std::vector<std::string> LeftOut(const CheckResult& result) {
    std::vector<std::string> why;
    for (const ComparedInputs& compared : result.compared) why.push_back(compared.left_out);
    return why;
  }

  MemoryWeights weights_;
  FakeClock clock_;
};

TEST_F(CheckOutputsTest, EachKindIsNamed) {
  constexpr std::string_view kGraph = "input x f32[4]; output y = relu(x)";
  std::vector<CheckInputs> inputs;
  for (const InputKind kind : {InputKind::kUsual, InputKind::kZeros, InputKind::kTiny}) {
    inputs.push_back({.kind = kind});
  }
  inputs.push_back({.set = InputSet{{"x", Tensor::Zeros({DType::kFloat32, {4}})}},
                    .name = "mine",
                    .reference_kernels = true});
  const auto result = Check(kGraph, kGraph, inputs);
  ASSERT_EQ(ToString(result.status()), "OK");
  std::vector<std::string> names;
  for (const ComparedInputs& compared : result->compared) {
    names.push_back(compared.inputs);
    EXPECT_EQ(compared.left_out, "");
    EXPECT_FALSE(compared.differs);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"usual", "zeros", "tiny", "mine"}));
  EXPECT_TRUE(result->compared.back().reference_kernels);
}

// What usual data does not show: the difference is at one value, or far away from zero.
TEST_F(CheckOutputsTest, EdgeValuesFindWhatUsualDataDoesNot) {
  const struct {
    const char* name;
    std::string_view reference, candidate;
    InputKind kind;
  } kCases[] = {
      {"a bound", "input x f32[64]; output y = clip(x) max=50",
       "input x f32[64]; output y = clip(x) max=60", InputKind::kLarge},
      {"a tiny one", "input x f32[64]; c = const f32[] {0.0001}; output y = add(x, c)",
       "input x f32[64]; output y = add(x, x)", InputKind::kTiny},
  };
  for (const auto& c : kCases) {
    const auto result = Check(c.reference, c.candidate, {{.kind = c.kind}});
    ASSERT_EQ(ToString(result.status()), "OK") << c.name;
    EXPECT_FALSE(IsEquivalent(result->errors[0], kTolerance)) << c.name;
    EXPECT_TRUE(result->compared[0].differs) << c.name;
  }
  const auto usual = Check(kCases[0].reference, kCases[0].candidate, {{}});
  EXPECT_TRUE(IsEquivalent(usual->errors[0], kTolerance)) << "within the bound";
}

TEST_F(CheckOutputsTest, EdgeValuesDoNotCountWhereTheModelIsNotFinite) {
  constexpr std::string_view kLog = "input x f32[8]; output y = log(x)";
  const auto result =
      Check(kLog, "input x f32[8]; output y = neg(log(x))", {{.kind = InputKind::kNegative}});
  ASSERT_EQ(ToString(result.status()), "OK");
  EXPECT_EQ(LeftOut(*result),
            std::vector<std::string>{"the model's outputs are not finite on them"});
  EXPECT_EQ(result->errors[0].max_abs, 0);
}

// The difference of nearly equal numbers is rounding alone: 0.5 - 0.3 - 0.2.
TEST_F(CheckOutputsTest, EdgeValuesDoNotCountWhereTheModelIsSensitive) {
  constexpr std::string_view kReference =
      "input x f32[8]; a = const f32[] {0.3}; b = const f32[] {0.2};"
      "c = const f32[] {1000000000}; output y = mul(sub(sub(x, a), b), c)";
  constexpr std::string_view kCandidate =
      "input x f32[8]; a = const f32[] {0.3}; b = const f32[] {0.2};"
      "c = const f32[] {1000000000}; output y = mul(sub(x, add(a, b)), c)";
  const auto result = Check(kReference, kCandidate, {{.kind = InputKind::kConstant}});
  ASSERT_EQ(ToString(result.status()), "OK");
  EXPECT_EQ(LeftOut(*result),
            std::vector<std::string>{"a rounding of the inputs moves the model's outputs as far"});
  // Usual data count, whatever the model does with them.
  const auto wrong = Check(kReference, "input x f32[8]; output y = mul(x, x)", {{}});
  EXPECT_TRUE(wrong->compared[0].differs);
}

TEST_F(CheckOutputsTest, WhatIsOptionalEndsWithTheTime) {
  constexpr std::string_view kGraph = "input x f32[4]; output y = relu(x)";
  std::vector<CheckInputs> inputs(6);
  for (size_t i = 3; i < 6; ++i) inputs[i] = {.kind = InputKind::kZeros, .optional = true};
  const auto result = Check(kGraph, kGraph, inputs, Nanos{3'500'000'000});
  ASSERT_EQ(ToString(result.status()), "OK");
  const std::string late = "no time was left";
  EXPECT_EQ(LeftOut(*result), (std::vector<std::string>{"", "", "", late, late, late}));
  const auto all = Check(kGraph, kGraph, inputs, Nanos{30'000'000'000});
  EXPECT_EQ(LeftOut(*all), std::vector<std::string>(6));
}

TEST_F(CheckOutputsTest, ReferenceKernelsRunOnceAndThenWhileThereIsTime) {
  constexpr std::string_view kGraph = "input x f32[4]; output y = relu(x)";
  const std::vector<CheckInputs> inputs(4, {.reference_kernels = true});
  const auto ran = [&](Nanos time) {
    const auto result = Check(kGraph, kGraph, inputs, time);
    int count = 0;
    for (const ComparedInputs& compared : result->compared) count += compared.reference_kernels;
    return count;
  };
  EXPECT_EQ(ran(Nanos{0}), 1);
  EXPECT_EQ(ran(Nanos{600'000'000'000}), 4);
}

TEST_F(CheckOutputsTest, OwnDataOfAnotherTypeIsAStatus) {
  constexpr std::string_view kGraph = "input x f32[4]; output y = relu(x)";
  const InputSet set = {{"x", Tensor::Zeros({DType::kFloat32, {5}})}};
  EXPECT_EQ(ToString(Check(kGraph, kGraph, {{.set = set, .name = "mine"}}).status()),
            "INVALID_ARGUMENT: mine inputs: input x: the model takes f32[4], given is f32[5]");
}

}  // namespace
}  // namespace ag
