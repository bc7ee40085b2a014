// The meaning of the operators of TASO's format: identities that hold only if they are read
// correctly.
#include "lab/taso/sample.h"

#include <gtest/gtest.h>

#include "lab/taso/testing/testing.h"
#include "rules/verify/compare.h"

namespace ag {
namespace {

struct Tally {
  int equal = 0, different = 0;
};

Tally TallyOf(const TasoRule& rule) {
  EXPECT_TRUE(CheckTasoRule(rule).ok()) << ToString(CheckTasoRule(rule));
  Tally tally;
  for (uint64_t seed = 1; seed < 4000 && tally.equal + tally.different < 40; ++seed) {
    const auto instance = SampleTasoInstance(rule, seed);
    if (!instance.ok() || !instance->target.has_value()) continue;
    const Graph& after = *instance->target;
    bool same = true;
    for (size_t i = 0; i < after.outputs().size(); ++i) {
      same &= after.type(after.outputs()[i].edge) ==
              instance->source.type(instance->source.outputs()[i].edge);
    }
    same = same && Compare(instance->source, after, 2).equal;
    ++(same ? tally.equal : tally.different);
  }
  return tally;
}

TasoOperator Constant(TasoOpType type, int kernel = 3) {
  return TasoOp(type, {}, {{TasoKey::kKernelHeight, kernel}, {TasoKey::kKernelWidth, kernel}});
}

TasoOperator Transpose(TasoTensor x, int permutation) {
  return TasoOp(TasoOpType::kTranspose, {x},
                {{TasoKey::kRank, 3}, {TasoKey::kPermutation, permutation}});
}

TasoOperator Enlarge(int kernel) {
  return TasoOp(TasoOpType::kEnlarge, {kW4},
                {{TasoKey::kKernelHeight, kernel}, {TasoKey::kKernelWidth, kernel}});
}

TasoOperator AddLast(int op) { return TasoOp(TasoOpType::kAdd, {{op}, kX3}); }
TasoOperator Binary(TasoOpType type, TasoTensor a, TasoTensor b) { return TasoOp(type, {a, b}); }

struct MeaningCase {
  const char* name;
  TasoRule rule;
  bool holds;
  bool sometimes_not = false;
};

using enum TasoOpType;

const MeaningCase kMeaningCases[] = {
    {"a convolution by the identity kernel changes nothing",
     TasoRuleOf({Constant(kConstantConv), TasoConv(kI1, {0}), AddLast(1)},
                {Binary(kAdd, kI1, kX3)}),
     true},
    {"but by the pool kernel it does",
     TasoRuleOf({Constant(kConstantPool), TasoConv(kI1, {0}), AddLast(1)},
                {Binary(kAdd, kI1, kX3)}),
     false},
    {"an average pool is a convolution by the pool kernel",
     TasoRuleOf({TasoPool(kAveragePool, kI1)}, {Constant(kConstantPool), TasoConv(kI1, {0})}),
     true},
    {"a max pool is not",
     TasoRuleOf({TasoPool(kMaxPool, kI1)}, {Constant(kConstantPool), TasoConv(kI1, {0})}), false},
    {"valid is not same",
     TasoRuleOf({TasoPool(kAveragePool, kI1, kTasoValid)},
                {Constant(kConstantPool), TasoConv(kI1, {0})}),
     false},
    {"a pool of a batch is the batch of pools",
     TasoRuleOf({TasoConcat(0, 4, kI1, kI2), TasoPool(kMaxPool, {0})},
                {TasoPool(kMaxPool, kI1), TasoPool(kMaxPool, kI2), TasoConcat(0, 4, {0}, {1})}),
     true},
    {"the identity matrix",
     TasoRuleOf({Constant(kConstantIdentity), Binary(kMatMul, kX1, {0}), AddLast(1)},
                {Binary(kAdd, kX1, kX3)}),
     true},
    {"ones",
     TasoRuleOf({Constant(kConstantOne), Binary(kMul, kX1, {0}), AddLast(1)},
                {Binary(kAdd, kX1, kX3)}),
     true},
    {"a transpose and its inverse",
     TasoRuleOf({Transpose(kX1, 15), Transpose({0}, 19), AddLast(1)}, {Binary(kAdd, kX1, kX3)}),
     true},
    {"a transpose twice",
     TasoRuleOf({Transpose(kX1, 15), Transpose({0}, 15), AddLast(1)}, {Binary(kAdd, kX1, kX3)}),
     false},
    {"an enlarged kernel computes the same, unless its size is even: its centre moves",
     TasoRuleOf({TasoConv(kI1, kW4)}, {Enlarge(5), TasoConv(kI1, {0})}), true,
     /*sometimes_not=*/true},
    {"but not without the pads",
     TasoRuleOf({TasoConv(kI1, kW4, TasoActivation::kNone, kTasoValid)},
                {Enlarge(5), TasoConv(kI1, {0}, TasoActivation::kNone, kTasoValid)}),
     false},
    {"a scale is linear",
     TasoRuleOf(
         {Binary(kAdd, kX1, kX2), Binary(kScalarMul, {0}, {-20})},
         {Binary(kScalarMul, kX1, {-20}), Binary(kScalarMul, kX2, {-20}), Binary(kAdd, {0}, {1})}),
     true},
    {"an activation is an operator",
     TasoRuleOf({TasoConv(kI1, kW4, TasoActivation::kSigmoid)},
                {TasoConv(kI1, kW4), TasoOp(kSigmoid, {{0}})}),
     true},
    {"and not another one",
     TasoRuleOf({TasoConv(kI1, kW4, TasoActivation::kTanh)},
                {TasoConv(kI1, kW4), TasoOp(kSigmoid, {{0}})}),
     false},
    {"a split undoes the last concat, whatever stands between",
     TasoRuleOf({TasoOp(kRelu, {kX1}), Binary(kAdd, {0}, kX3)},
                {TasoConcat(1, 2, kX1, kX3), TasoOp(kRelu, {{0}}), TasoSplit(1, {1}),
                 Binary(kAdd, {2, 0}, kX3)}),
     true},
    {"and its parts stand in order",
     TasoRuleOf({TasoOp(kRelu, {kX1}), Binary(kAdd, {0}, kX3)},
                {TasoConcat(1, 2, kX1, kX3), TasoOp(kRelu, {{0}}), TasoSplit(1, {1}),
                 Binary(kAdd, {2, 1}, kX3)}),
     false},
};

TEST(Sample, OperatorsMeanWhatTasoMeans) {
  for (const MeaningCase& c : kMeaningCases) {
    SCOPED_TRACE(c.name);
    const Tally tally = TallyOf(c.rule);
    EXPECT_GE(tally.equal + tally.different, 20);
    if (c.sometimes_not) {
      EXPECT_GE(tally.equal, 20);
      EXPECT_GE(tally.different, 1);
    } else if (c.holds) {
      EXPECT_EQ(tally.different, 0);
    } else {
      EXPECT_GE(tally.different, 10);
    }
  }
}

}  // namespace
}  // namespace ag
