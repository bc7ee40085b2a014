#include "lab/taso/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/taso/builtins.h"
#include "lab/taso/testing/testing.h"
#include "rules/verify/verify.h"

namespace ag {
namespace {

using testing::HasSubstr;
using enum TasoOpType;

TasoOperator AddOf(TasoTensor a, TasoTensor b) { return TasoOp(kAdd, {a, b}); }
TasoOperator MatMulOf(TasoTensor a, TasoTensor b) { return TasoOp(kMatMul, {a, b}); }

struct LineCase {
  const char* name;
  TasoRule rule;
  const char* line;
};

const LineCase kLineCases[] = {
    {"nothing to guard",
     TasoRuleOf({MatMulOf(kX1, kW1), MatMulOf(kX2, kW1), AddOf({0}, {1})},
                {AddOf(kX1, kX2), MatMulOf({0}, kW1)}),
     "taso-test [rounding]: add(matmul(x1, w1), matmul(x2, w1)) => matmul(add(x1, x2), w1)"},
    {"exact", TasoRuleOf({TasoOp(kRelu, {kX1}), TasoOp(kRelu, {{0}})}, {TasoOp(kRelu, {kX1})}),
     "taso-test [exact]: relu(relu(x1)) => relu(x1)"},
    {"operands that broadcast",
     TasoRuleOf({AddOf(kI1, kI2), TasoConv({0}, kW4)},
                {TasoConv(kI1, kW4), TasoConv(kI2, kW4), AddOf({0}, {1})}),
     "taso-test [finite]: conv.c(add(i1, i2), w4, b0) => "
     "add(conv.c(i1, w4, b0), conv.c(i2, w4, sub(b0, b0))) if same_shape(i1, i2)"},
    {"groups that line up",
     TasoRuleOf({TasoConv(kI1, kW4), TasoConv(kI2, kW5), TasoConcat(1, 4, {0}, {1})},
                {TasoConcat(1, 4, kI1, kI2), TasoConcat(0, 4, kW4, kW5), TasoConv({0}, {1})}),
     "taso-test [exact]: concat(conv.c(i1, w4, b0), conv.c(i2, w5, b1); axis=1) => "
     "conv.c(concat(i1, i2; axis=1), concat(w4, w5; axis=0), concat(b0, b1; axis=0); "
     "group=(dim(i1, 1) + dim(i2, 1)) / dim(w4, 1)) if "
     "shape_but(i1, 1) == shape_but(i2, 1), same_shape(w4, w5)"},
    {"one group",
     TasoRuleOf({TasoConv(kI1, kW4), TasoConv(kI1, kW5), TasoConcat(1, 4, {0}, {1})},
                {TasoConcat(0, 4, kW4, kW5), TasoConv(kI1, {0})}),
     "taso-test [exact]: concat(conv.c(i1, w4, b0; group=1), conv.c(i1, w5, b1; group=1); axis=1) "
     "=> conv.c(i1, concat(w4, w5; axis=0), concat(b0, b1; axis=0)) "
     "if shape_but(w4, 0) == shape_but(w5, 0)"},
};

TEST(Import, FindsTheWeakestGuards) {
  for (const LineCase& c : kLineCases) {
    const TasoImport import = ImportTasoRule(c.rule);
    EXPECT_TRUE(import.proved) << c.name << "\n" << import.why;
    EXPECT_EQ(import.line, c.line) << c.name;
  }
}

struct LeftOutCase {
  const char* name;
  TasoRule rule;
  const char* why;
};

TEST(Import, KeepsOutWhatNoGuardMakesTrue) {
  const LeftOutCase kLeftOut[] = {
      {"a dropped operand", TasoBuiltins()[8], "output o0 element "},
      {"relu is linear",
       TasoRuleOf({AddOf(kX1, kX2), TasoOp(kRelu, {{0}})},
                  {TasoOp(kRelu, {kX1}), TasoOp(kRelu, {kX2}), AddOf({0}, {1})}),
       "output o0 element "},
      {"noise", TasoRuleOf({TasoOp(kRelu, {kX1})}, {TasoOp(kRelu, {kX1})}),
       "noise: both sides are the same"},
      {"an activation moved inside",
       TasoRuleOf({TasoConv(kI1, kW4), TasoOp(kRelu, {{0}})},
                  {TasoConv(kI1, kW4, TasoActivation::kRelu)}),
       "both sides are the same: our activations are operators of their own"},
      {"no form", TasoBuiltins()[12], "our language has no form for ENLARGE"},
      {"attributes from nowhere",
       TasoRuleOf({TasoConv(kI1, kW4)}, {TasoConv(kI1, kW4, TasoActivation::kNone, kTasoValid)}),
       "no CONV2D of the source has the target's attributes"},
  };
  for (const LeftOutCase& c : kLeftOut) {
    const TasoImport import = ImportTasoRule(c.rule);
    EXPECT_FALSE(import.proved) << c.name << "\n" << import.line;
    EXPECT_THAT(import.why, HasSubstr(c.why)) << c.name;
    // A rule that is left out becomes a comment, so no rule is loaded.
    const std::string text = FormatTasoImport({c.rule}, {import}, "a.pb");
    const auto loaded = RuleSet::Parse(text, "a.rules");
    ASSERT_TRUE(loaded.ok()) << ToString(loaded.status());
    EXPECT_TRUE(loaded->rules().empty()) << text;
    EXPECT_THAT(text, HasSubstr("0 of 1 rules"));
  }
}

TEST(Import, ThePublishedFileLoadsAndIsProved) {
  const std::string file = PublishedTasoFile();
  if (file.empty()) GTEST_SKIP() << "no graph_subst.pb: name it in AUTOGRAPH_TASO_FILE";
  const auto rules = ReadTasoFile(*ReadFile(file));
  ASSERT_TRUE(rules.ok()) << ToString(rules.status());
  std::vector<TasoImport> imports;
  for (const TasoRule& rule : *rules) {
    imports.push_back(ImportTasoRule(rule, {.instances = 100}));
    const bool noise = imports.back().why.starts_with("noise: ");
    const bool same = imports.back().why.starts_with("both sides are the same");
    EXPECT_TRUE(imports.back().proved || noise || same) << rule.name << "\n" << imports.back().why;
  }
  const auto loaded = RuleSet::Parse(FormatTasoImport(*rules, imports, "a.pb"), "a.rules");
  ASSERT_TRUE(loaded.ok()) << ToString(loaded.status());
  EXPECT_EQ(loaded->rules().size(), 111u);
  // With other instances than those that selected the guards.
  for (const Rule& rule : loaded->rules()) {
    const VerifyReport report = Verify(rule, {.instances_min = 60, .seed = 99});
    EXPECT_TRUE(report.proved) << rule.text << "\n" << report.counter_example;
  }
}

}  // namespace
}  // namespace ag
