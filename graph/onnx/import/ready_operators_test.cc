// Single operators: when they are made ready, and by what they are known again.
#include "graph/onnx/import/ready_operators.h"

#include <gtest/gtest.h>

#include "base/clock.h"

namespace ag {
namespace {

constexpr Nanos kShort{1000}, kLong{600'000};

class ReadyOperatorsTest : public ::testing::Test {
 protected:
  // Runs a relu, or `form`, that takes so long on the reference kernels.
  StatusOr<ReadyOperators::Results> Run(int64_t size, Nanos reference_ns,
                                        const std::string& form = "", int64_t lasting = 0,
                                        OpKind op = OpKind::kRelu) {
    const GivenOperand x{Tensor::Zeros({DType::kFloat32, {size, size}}), 0};
    const GivenOperand w{Tensor::Zeros({DType::kFloat32, {size, size}}), lasting};
    std::vector<GivenOperand> operands = {x};
    if (op == OpKind::kMatMul) operands.push_back(w);
    const auto reference = [&]() -> StatusOr<ReadyOperators::Results> {
      clock_.SleepFor(reference_ns);
      ++references_;
      return std::vector<Tensor>{x.tensor};
    };
    return operators_.Run({op, form, operands, [] { return Attributes(); }}, reference);
  }

  FakeClock clock_;
  int references_ = 0, made_ = 0, runs_ = 0;
  Status make_status_;
  size_t inputs_ = 0;
  ReadyOperators operators_{[this](const Graph& graph, const WeightSource&) -> StatusOr<RunGraph> {
                              ++made_;
                              AG_TRY(make_status_);
                              inputs_ = graph.inputs().size();
                              return [this](std::span<const Tensor>, std::span<Tensor>) {
                                ++runs_;
                                return OkStatus();
                              };
                            },
                            clock_};
};

TEST_F(ReadyOperatorsTest, AnOperatorIsMadeReadyOnceItCostEnough) {
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Run(4, kShort).ok());
  EXPECT_EQ(made_, 0);
  EXPECT_TRUE(Run(4, kLong).ok());
  EXPECT_EQ(references_, 4);
  for (int i = 0; i < 3; ++i) {
    const auto results = Run(4, kShort);
    ASSERT_TRUE(results.ok() && results->has_value());
    EXPECT_EQ((**results)[0].type(), (TensorType{DType::kFloat32, {4, 4}}));
  }
  EXPECT_EQ(references_, 4);
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(runs_, 3);
}

TEST_F(ReadyOperatorsTest, OtherSizesAndFormsAreOtherOperators) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(Run(4, kLong).ok());
    EXPECT_TRUE(Run(5, kLong).ok());
    EXPECT_TRUE(Run(4, kLong, "alpha").ok());
  }
  EXPECT_EQ(made_, 3);
}

TEST_F(ReadyOperatorsTest, ALargeProductIsMadeReadyAtOnce) {
  EXPECT_TRUE(Run(256, kShort, "", 0, OpKind::kMatMul).ok());
  EXPECT_EQ(references_, 0);
  EXPECT_EQ(inputs_, 2u);
}

TEST_F(ReadyOperatorsTest, AWeightIsAConstantOfTheGraph) {
  EXPECT_TRUE(Run(256, kShort, "", 7, OpKind::kMatMul).ok());
  EXPECT_EQ(inputs_, 1u);
  EXPECT_TRUE(Run(256, kShort, "", 8, OpKind::kMatMul).ok());
  EXPECT_EQ(made_, 2);
}

TEST_F(ReadyOperatorsTest, WhatTheDeviceLacksStaysOnTheReferenceKernels) {
  make_status_ = Err(StatusCode::kUnimplemented, "no kernel");
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(Run(4, kLong).ok());
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(references_, 4);
}

TEST_F(ReadyOperatorsTest, ATensorWithoutElementsIsNotForADevice) {
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(Run(0, kLong).ok());
  EXPECT_EQ(made_, 0);
}

TEST_F(ReadyOperatorsTest, ALimitedNumberIsKept) {
  EXPECT_TRUE(Run(3, kLong).ok());
  EXPECT_TRUE(Run(3, kLong).ok());
  for (int i = 0; i < 3000; ++i) EXPECT_TRUE(Run(2, kShort, fmt::format("{}", i)).ok());
  EXPECT_EQ(made_, 1);
  references_ = 0;
  EXPECT_TRUE(Run(3, kShort).ok());
  EXPECT_EQ(references_, 1);
}

}  // namespace
}  // namespace ag
