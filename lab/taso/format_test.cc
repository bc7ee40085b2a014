#include "lab/taso/format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "autograph/v1/taso.pb.h"
#include "base/random.h"
#include "lab/taso/testing/testing.h"

namespace ag {
namespace {

void AddSide(const std::vector<TasoOperator>& side,
             google::protobuf::RepeatedPtrField<autograph::v1::TasoOperator>* out) {
  for (const TasoOperator& op : side) {
    auto* added = out->Add();
    added->set_type(static_cast<int>(op.type));
    for (const TasoTensor& input : op.inputs) {
      added->add_input()->set_op(input.op);
      added->mutable_input()->rbegin()->set_output(input.output);
    }
    for (const auto& [key, value] : op.parameters) {
      auto* parameter = added->add_parameter();
      parameter->set_key(static_cast<int>(key));
      parameter->set_value(value);
    }
  }
}

std::string FileOf(const std::vector<TasoRule>& rules) {
  autograph::v1::TasoRuleFile file;
  for (const TasoRule& rule : rules) {
    auto* added = file.add_rule();
    AddSide(rule.source, added->mutable_source());
    AddSide(rule.target, added->mutable_target());
    for (const TasoMapping& mapping : rule.mappings) {
      auto* m = added->add_mapping();
      m->set_source_op(mapping.source.op);
      m->set_source_output(mapping.source.output);
      m->set_target_op(mapping.target.op);
      m->set_target_output(mapping.target.output);
    }
  }
  return file.SerializeAsString();
}

const TasoOperator kReluOperator = TasoOp(TasoOpType::kRelu, {kI1});

struct DecoderCase {
  const char* name;
  TasoOperator op;
  const char* text;  // FormatTasoRule's text, or the end of the error.
};

const DecoderCase kDecoderCases[] = {
    {"conv", TasoConv(kI1, kW4), "conv(i1, w4)"},
    {"conv with an activation", TasoConv(kI1, kW4, TasoActivation::kTanh), "conv_tanh(i1, w4)"},
    {"max pool", TasoPool(TasoOpType::kMaxPool, kI1), "max_pool(i1)"},
    {"average pool", TasoPool(TasoOpType::kAveragePool, kI1, kTasoValid), "average_pool(i1)"},
    {"relu", TasoOp(TasoOpType::kRelu, {kX1}), "relu(x1)"},
    {"sigmoid", TasoOp(TasoOpType::kSigmoid, {kX1}), "sigmoid(x1)"},
    {"tanh", TasoOp(TasoOpType::kTanh, {{-20}}), "tanh(s0)"},
    {"batch-norm", TasoOp(TasoOpType::kBatchNorm, {kI1, {-21}, {-22}, {-23}, {-24}}),
     "batch_norm(i1, v21, v22, v23, v24)"},
    {"concat", TasoConcat(1, 4, kI1, kI2), "concat1(i1, i2)"},
    {"split", TasoSplit(0, kX1), "split0(x1).0"},
    {"reshape", TasoOp(TasoOpType::kReshape, {kX1}), "reshape(x1)"},
    {"transpose",
     TasoOp(TasoOpType::kTranspose, {kX1}, {{TasoKey::kRank, 3}, {TasoKey::kPermutation, 15}}),
     "transpose(x1)"},
    {"add", TasoOp(TasoOpType::kAdd, {kX1, kX2}), "add(x1, x2)"},
    {"mul", TasoOp(TasoOpType::kMul, {kX1, kX2}), "mul(x1, x2)"},
    {"matmul", TasoOp(TasoOpType::kMatMul, {kX1, kW1}, {{TasoKey::kActivation, 1}}),
     "matmul_sigmoid(x1, w1)"},
    {"scalar mul", TasoOp(TasoOpType::kScalarMul, {kX1, {-20}}), "scale(x1, s0)"},
    {"enlarge", TasoOp(TasoOpType::kEnlarge, {kW4, kW5}), "enlarge(w4, w5)"},
    {"merge groups", TasoOp(TasoOpType::kMergeGroups, {kW4}, {{TasoKey::kMergeCount, 2}}),
     "merge_groups(w4)"},
    {"identity", TasoOp(TasoOpType::kConstantIdentity, {}), "identity()"},
    {"ones", TasoOp(TasoOpType::kConstantOne, {}), "ones()"},
    {"identity kernel",
     TasoOp(TasoOpType::kConstantConv, {},
            {{TasoKey::kKernelHeight, 3}, {TasoKey::kKernelWidth, 3}}),
     "identity_kernel()"},
    {"pool kernel",
     TasoOp(TasoOpType::kConstantPool, {},
            {{TasoKey::kKernelHeight, 3}, {TasoKey::kKernelWidth, 3}}),
     "pool_kernel()"},
    {"variables beyond the seeds", TasoOp(TasoOpType::kRelu, {{-77}}), "relu(v77)"},
};

TEST(Format, ReadsEveryOperator) {
  for (const DecoderCase& c : kDecoderCases) {
    SCOPED_TRACE(c.name);
    const auto rules = ReadTasoFile(FileOf({TasoRuleOf({c.op}, {kReluOperator})}));
    ASSERT_TRUE(rules.ok()) << ToString(rules.status());
    ASSERT_EQ(rules->size(), 1u);
    EXPECT_EQ((*rules)[0].name, "0");
    EXPECT_EQ(FormatTasoRule((*rules)[0]), std::string(c.text) + " => relu(i1)");
    EXPECT_EQ((*rules)[0].source[0].parameters, c.op.parameters);
  }
}

TEST(Format, PermutationsAreNumbersInBaseRank) {
  EXPECT_EQ(TasoPermutation(15, 3), (std::vector<int64_t>{1, 2, 0}));
  EXPECT_EQ(TasoPermutation(2, 2), (std::vector<int64_t>{1, 0}));
  EXPECT_THAT(TasoPermutation(3, 2), testing::IsEmpty());  // 1, 1.
  EXPECT_THAT(TasoPermutation(-1, 2), testing::IsEmpty());
  EXPECT_THAT(TasoPermutation(27, 3), testing::IsEmpty());  // More digits than axes.
  EXPECT_THAT(TasoPermutation(0, 0), testing::IsEmpty());
}

TasoRule With(TasoOperator op) { return TasoRuleOf({std::move(op)}, {kReluOperator}); }

TasoOperator Changed(TasoOperator op, TasoKey key, int value) {
  op.parameters[key] = value;
  return op;
}

TEST(Format, RefusesRulesThatCannotBe) {
  TasoRule unmapped = With(kReluOperator), variable = With(kReluOperator),
           output = With(kReluOperator);
  unmapped.mappings.clear();
  variable.mappings[0].source = kX1;
  output.mappings[0].target = {0, 1};
  TasoOperator huge = TasoOp(TasoOpType::kMergeGroups, {kW4});
  const struct {
    TasoRule rule;
    const char* message;
  } kCases[] = {
      {With(TasoOp(static_cast<TasoOpType>(26), {kX1})),
       "source operator 0: unknown operator type 26"},
      {With(TasoOp(TasoOpType::kAdd, {kX1})), "source operator 0 (EW_ADD): takes 2 inputs, not 1"},
      {With(TasoOp(TasoOpType::kEnlarge, {})),
       "source operator 0 (ENLARGE): takes 1 to 2 inputs, not 0"},
      {With(TasoOp(TasoOpType::kConcat, {kX1, kX2}, {{TasoKey::kRank, 2}})),
       "source operator 0 (CONCAT): lacks parameter 11"},
      {With(huge), "source operator 0 (MERGE_GCONV): lacks parameter 14"},
      {With(TasoConcat(2, 2, kX1, kX2)), "source operator 0 (CONCAT): axis is 2, not in [0, 1]"},
      {With(Changed(TasoConv(kI1, kW4), TasoKey::kStrideWidth, 0)),
       "source operator 0 (CONV2D): stride is 0, not in [1, 1048576]"},
      {With(Changed(TasoConv(kI1, kW4), TasoKey::kPadding, 2)),
       "source operator 0 (CONV2D): padding is 2, not in [0, 1]"},
      {With(Changed(kReluOperator, TasoKey::kActivation, 4)),
       "source operator 0 (RELU): activation is 4, not in [0, 3]"},
      {With(Changed(kReluOperator, static_cast<TasoKey>(18), 0)),
       "source operator 0 (RELU): unknown parameter 18"},
      {With(TasoOp(TasoOpType::kTranspose, {kX1},
                   {{TasoKey::kRank, 2}, {TasoKey::kPermutation, 3}})),
       "source operator 0 (TRANSPOSE): 3 is no permutation of 2 axes"},
      {With(TasoOp(TasoOpType::kRelu, {{0}})),
       "source operator 0 (RELU): reads operator 0, which does not stand before"},
      {With(TasoOp(TasoOpType::kRelu, {{-1, 1}})),
       "source operator 0 (RELU): variable -1 has one output, not 2"},
      {TasoRuleOf({kReluOperator, TasoOp(TasoOpType::kTanh, {{0, 1}})}, {kReluOperator}),
       "source operator 1 (TANH): operator 0 has no output 1"},
      {TasoRuleOf({kReluOperator}, {TasoOp(TasoOpType::kSplit, {kX1}, {{TasoKey::kAxis, 0}})}),
       "target operator 0 (SPLIT): lacks parameter 2"},
      {unmapped, "has 1 source operators and 0 outputs"},
      {variable, "output 0: variable -1 cannot be replaced"},
      {output, "output 0 of the target: operator 0 has no output 1"},
      {TasoRuleOf(std::vector<TasoOperator>(65, kReluOperator), {kReluOperator}),
       "source has 65 operators, more than 64"},
  };
  for (const auto& c : kCases) {
    const auto rules = ReadTasoFile(FileOf({With(kReluOperator), c.rule}));
    EXPECT_EQ(rules.status().code(), StatusCode::kInvalidArgument) << c.message;
    const std::string message = Message(rules.status());
    EXPECT_EQ(message.substr(message.find("rule 1: ")), std::string("rule 1: ") + c.message);
  }
}

TEST(Format, SaysWhereADamagedFileIsDamaged) {
  const std::string good = FileOf({With(kReluOperator)});
  const std::string n = std::to_string(good.size());
  const struct {
    std::string bytes, message;
  } kCases[] = {
      {"", "no TASO rule file: it has 0 bytes"},
      {"#!/bin/sh\n",
       "byte 0: expected a rule (field 1, length-delimited), found field 4 of wire type 3: no TASO "
       "rule file"},
      {good + "\x08\x01",
       "byte " + n +
           ": expected a rule (field 1, length-delimited), found field 1 of wire type 0: no TASO "
           "rule file"},
      {good + "\x0a\x7f\x01", "byte " + n + ": rule 1 is cut off: 1 bytes are left"},
      {good + "\x0a", "byte " + n + ": rule 1 is cut off: 0 bytes are left"},
      {good + "\x0a\x02\x0a\x05", "byte " + n + ": rule 1: damaged: its 2 bytes are no rule"},
      {good + "\x0a\x02\x28\x01", "byte " + n + ": rule 1: field 5 is not of this format"},
      {good + std::string("\x0a\x02\x0a\x00", 4),
       "byte " + n + ": rule 1: source operator 0 has no type"},
      {good + std::string("\x0a\x08\x0a\x06\x08\x08\x1a\x02\x08\x0b", 10),
       "byte " + n + ": rule 1: source operator 0 (RELU): parameter 11 has no value"},
  };
  for (const auto& c : kCases) {
    const auto rules = ReadTasoFile(c.bytes);
    EXPECT_EQ(rules.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(Message(rules.status()), c.message);
  }
}

TEST(Format, SurvivesAnyDamage) {
  const std::string good =
      FileOf({With(TasoConv(kI1, kW4)), With(TasoConcat(1, 4, kI1, kI2)), With(kReluOperator)});
  size_t whole = 0;
  for (size_t n = 1; n <= good.size(); ++n) whole += ReadTasoFile(good.substr(0, n)).ok();
  EXPECT_EQ(whole, 3u);  // A prefix is a file only when it ends after a rule.
  Random random(7);
  for (int i = 0; i < 20000; ++i) {
    std::string bad = good;
    for (uint64_t flips = 1 + random.Below(4); flips > 0; --flips) {
      bad[random.Below(bad.size())] = static_cast<char>(random.Below(256));
    }
    const auto rules = ReadTasoFile(bad);
    if (rules.ok()) {
      for (const TasoRule& rule : *rules) EXPECT_TRUE(CheckTasoRule(rule).ok());
    }
  }
}

}  // namespace
}  // namespace ag
