#include "lab/taso/coverage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lab/taso/builtins.h"
#include "lab/taso/testing/testing.h"
#include "rules/sets/built_in_rules.h"

namespace ag {
namespace {

using testing::HasSubstr;
using enum TasoOpType;

TasoOperator Relu(TasoTensor x) { return TasoOp(kRelu, {x}); }
TasoOperator Add(TasoTensor a, TasoTensor b) { return TasoOp(kAdd, {a, b}); }
TasoOperator MatMul(TasoTensor a, TasoTensor b) { return TasoOp(kMatMul, {a, b}); }

TasoRule Builtin(std::string_view name) {
  for (TasoRule& rule : TasoBuiltins()) {
    if (rule.name == name) return rule;
  }
  ADD_FAILURE() << name;
  return {};
}

// Two convolutions side by side as the groups of one: TASO's #99 and #130, with relu #100 and #131.
TasoRule ConcatToGroups(TasoActivation activation) {
  return TasoRuleOf(
      {TasoConv(kI1, kW4, activation), TasoConv(kI2, kW5, activation), TasoConcat(1, 4, {0}, {1})},
      {TasoConcat(1, 4, kI1, kI2), TasoConcat(0, 4, kW4, kW5), TasoConv({0}, {1}, activation)});
}

TasoRule WithTwoOutputs(TasoRule rule, TasoTensor first, TasoTensor second) {
  rule.mappings = {{first, {static_cast<int>(rule.target.size()) - 1, 0}},
                   {second, {static_cast<int>(rule.target.size()) - 1, 1}}};
  return rule;
}

struct VerdictCase {
  const char* name;
  TasoRule rule;
  TasoVerdict verdict;
  const char* says;  // Part of the expected text.
};

const VerdictCase kCases[] = {
    {"linear in the left operand (#22)",
     TasoRuleOf({MatMul(kX1, kW1), MatMul(kX2, kW1), Add({0}, {1})},
                {Add(kX1, kX2), MatMul({0}, kW1)}),
     TasoVerdict::kImplied, "matmul-sum-same-weights"},
    {"sums in another grouping (#24)",
     TasoRuleOf({Add(kX1, kX2), Add(kX3, {0})}, {Add(kX1, kX3), Add(kX2, {0})}),
     TasoVerdict::kImplied, "A1"},
    {"an activation inside the convolution (#64)",
     TasoRuleOf({TasoConv(kI1, kW4), Relu({0})}, {TasoConv(kI1, kW4, TasoActivation::kRelu)}),
     TasoVerdict::kImplied, "the same graph in our IR"},
    {"groups that do not line up (#99, #130)", ConcatToGroups(TasoActivation::kNone),
     TasoVerdict::kRepaired, "conv-concat-to-groups if n = shape(x[i]), m = shape(w[i])"},
    {"the same with relu (#100, #131)", ConcatToGroups(TasoActivation::kRelu),
     TasoVerdict::kRepaired, "unary-out-of-concat, conv-concat-to-groups"},
    {"no guard on groups (#127)",
     WithTwoOutputs(TasoRuleOf({TasoConv(kI1, kW4), TasoConv(kI1, kW5)},
                               {TasoConcat(0, 4, kW4, kW5), TasoConv(kI1, {0}), TasoSplit(1, {1})}),
                    {0}, {1}),
     TasoVerdict::kRepaired, "conv-merge-siblings if group=1"},
    {"a sum that broadcasts (#60)",
     TasoRuleOf({Add(kI1, kI2), TasoConv({0}, kW4)},
                {TasoConv(kI1, kW4), TasoConv(kI2, kW4), Add({0}, {1})}),
     TasoVerdict::kRepaired, "conv-distribute-input if same_shape(x, y)"},
    {"a concat whose operands broadcast (#71)",
     TasoRuleOf({Add(kX1, kX2), Add(kX2, kX3), TasoConcat(1, 2, {0}, {1})},
                {TasoConcat(1, 2, kX1, kX2), TasoConcat(1, 2, kX2, kX3), Add({0}, {1})}),
     TasoVerdict::kRepaired, "has shape"},
    {"a dropped operand", Builtin("conv-mul-1-same"), TasoVerdict::kRepaired,
     "scale-into-conv if single_use(y)"},
    {"an epsilon of its own", Builtin("conv-batch-norm-2-valid"), TasoVerdict::kRepaired,
     "epsilon=0.01"},
    {"a dead operator", TasoRuleOf({Relu(kX2), Relu(kX1), Relu({1})}, {Relu(kX1)}),
     TasoVerdict::kNoise, "dead: no output reads operator 0 (RELU) of the source"},
    {"one dead in the target", TasoRuleOf({Relu(kX1), Relu({0})}, {Relu(kX1), Relu(kX1)}),
     TasoVerdict::kNoise, "dead: no output reads operator 0 (RELU) of the target"},
    {"input as weights (#32)",
     TasoRuleOf({Add(kW4, kW5), TasoConv({0}, {0})}, {Add(kW5, kW4), TasoConv({0}, {0})}),
     TasoVerdict::kNoise, "one tensor is input and weights"},
    {"roots that share nothing (#70)",
     WithTwoOutputs(TasoRuleOf({Relu(kX1), Relu(kX2)},
                               {TasoConcat(1, 2, kX1, kX2), Relu({0}), TasoSplit(1, {1})}),
                    {0}, {1}),
     TasoVerdict::kNoise, "2 roots that share no tensor"},
    {"a variable from nowhere", TasoRuleOf({Relu(kX1)}, {Add(kX1, kX2)}), TasoVerdict::kNoise,
     "the source has no x2"},
    {"no change", TasoRuleOf({Relu(kX1)}, {Relu(kX1)}), TasoVerdict::kNoise,
     "both sides are the same"},
    {"a source that fits no shapes",
     TasoRuleOf({MatMul(kX1, kX2), TasoConcat(1, 4, {0}, {0})}, {Relu(kX1)}), TasoVerdict::kNoise,
     "ill-typed: the source fits no shapes: CONCAT: "},
    {"a target that fits no shapes",
     TasoRuleOf({MatMul(kX1, kW1)}, {MatMul(kX1, kW1), TasoSplit(1, {0})}), TasoVerdict::kNoise,
     "ill-typed: the target fits no shapes: SPLIT: axis 1 was not joined from 2 parts"},
    {"wrong everywhere", TasoRuleOf({Relu(kX1)}, {TasoOp(kTanh, {kX1})}), TasoVerdict::kUnknown,
     "wrong on all shapes, as x1["},
    {"true, and none of ours",
     TasoRuleOf(
         {TasoPool(kAveragePool, kI1), TasoConv({0}, kW4)},
         {TasoOp(kConstantPool, {}, {{TasoKey::kKernelHeight, 3}, {TasoKey::kKernelWidth, 3}}),
          TasoConv(kI1, {0}), TasoConv({1}, kW4)}),
     TasoVerdict::kUnknown, "no 4 steps of ours on i1["},
};

TEST(Coverage, GivesEachKindItsVerdict) {
  for (const VerdictCase& c : kCases) {
    SCOPED_TRACE(c.name);
    ASSERT_TRUE(CheckTasoRule(c.rule).ok()) << ToString(CheckTasoRule(c.rule));
    const TasoCoverage coverage = CoverTasoRule(c.rule, BuiltInRules());
    const std::string text = FormatTasoCoverage(coverage);
    EXPECT_EQ(coverage.verdict, c.verdict) << text;
    EXPECT_THAT(text, HasSubstr(c.says));
    EXPECT_EQ(coverage.verdict == TasoVerdict::kRepaired,
              !coverage.difference.empty() && coverage.reason.empty())
        << text;
  }
}

TEST(Coverage, TheSameSeedSaysTheSame) {
  const TasoRule rule = ConcatToGroups(TasoActivation::kNone);
  EXPECT_EQ(FormatTasoCoverage(CoverTasoRule(rule, BuiltInRules(), {.seed = 3})),
            FormatTasoCoverage(CoverTasoRule(rule, BuiltInRules(), {.seed = 3})));
}

TEST(Coverage, AVerdictNeedsTheRulesOfItsPath) {
  const TasoRule rule = kCases[0].rule;
  const RuleSet without = BuiltInRules().Without({"matmul-sum-same-weights"}, false);
  EXPECT_EQ(CoverTasoRule(rule, without).verdict, TasoVerdict::kUnknown);
  // Two steps are needed and one is allowed.
  EXPECT_EQ(CoverTasoRule(ConcatToGroups(TasoActivation::kRelu), BuiltInRules(), {.steps_max = 1})
                .verdict,
            TasoVerdict::kUnknown);
}

TEST(Coverage, TheBuiltinsAreTwelveAndTwoAndFour) {
  const std::vector<TasoRule> builtins = TasoBuiltins();
  ASSERT_EQ(builtins.size(), 18u);
  std::vector<TasoCoverage> coverage;
  for (const TasoRule& rule : builtins) {
    EXPECT_TRUE(CheckTasoRule(rule).ok()) << rule.name;
    coverage.push_back(CoverTasoRule(rule, BuiltInRules()));
  }
  EXPECT_EQ(TasoCoverageSummary(coverage), "8 implied, 10 repaired, 0 noise, 0 unknown");
}

// docs/rules.md has the table between two marks. AG_WRITE_DOCS=1 lab_taso_test writes it.
TEST(Coverage, ThePublishedFileIsCoveredAndTheDocsSayHow) {
  const std::string file = PublishedTasoFile();
  if (file.empty()) GTEST_SKIP() << "no graph_subst.pb: name it in AUTOGRAPH_TASO_FILE";
  auto rules = ReadTasoFile(*ReadFile(file));
  ASSERT_TRUE(rules.ok()) << ToString(rules.status());
  ASSERT_EQ(rules->size(), 133u);
  for (TasoRule& rule : TasoBuiltins()) rules->push_back(std::move(rule));
  std::vector<TasoCoverage> coverage;
  for (const TasoRule& rule : *rules) {
    coverage.push_back(CoverTasoRule(rule, BuiltInRules()));
    EXPECT_NE(coverage.back().verdict, TasoVerdict::kUnknown)
        << FormatTasoCoverage(coverage.back());
  }
  EXPECT_EQ(TasoCoverageSummary(coverage), "86 implied, 45 repaired, 20 noise, 0 unknown");
  const std::string path = AG_SOURCE_DIR "/docs/rules.md";
  const std::string page = *ReadFile(path);
  const std::string begin = "<!-- Generated by AG_WRITE_DOCS=1 lab_taso_test -->\n";
  const size_t from = page.find(begin);
  const size_t to = page.find("<!-- End of the generated part -->");
  ASSERT_TRUE(from != std::string::npos && to != std::string::npos);
  const std::string table = TasoCoverageTable(coverage) + "\n";
  if (std::getenv("AG_WRITE_DOCS") != nullptr) {
    const std::string text = page.substr(0, from + begin.size()) + table + page.substr(to);
    ASSERT_TRUE(WriteFileAtomically(path, text).ok());
    return;
  }
  EXPECT_EQ(page.substr(from + begin.size(), to - from - begin.size()), table)
      << "AG_WRITE_DOCS=1 lab_taso_test writes docs/rules.md anew";
}

}  // namespace
}  // namespace ag
